"""Things by id or by name: which one a path means, and which names new things may have.

Ids begin with a digit and names with a letter or `_`, so they cannot be confused. Several apps may use one name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import msgspec

from rota import ids
from rota.api import problem
from rota.api.call import Call
from rota.api.problem import Flaw, Problem
from rota.api.query import Page
from rota.domain import names
from rota.domain.errors import DefinitionError

T = TypeVar("T")


class NamedPage(Page, frozen=True, kw_only=True, rename="camel"):
    """The parameters of a list of definitions, which is in the order of their names."""

    order: Annotated[str, msgspec.Meta(pattern="^(asc|desc)$")] = "asc"


class OfApp(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`app` decides between things of one name."""

    app: str | None = None


class OfAppOrDry(OfApp, frozen=True, kw_only=True, rename="camel"):
    """For writes, which may be previewed."""

    dry_run: bool = False


class Note(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Why something is paused."""

    note: Annotated[str, msgspec.Meta(max_length=500)] | None = None


def is_id(thing: str) -> bool:
    """Whether a part of a path is an id, not a name."""
    return thing[:1].isdigit()


def number(thing: str) -> int:
    """The id of a thing that is numbered; an id that no row can have is not found."""
    if not thing.isdecimal() or not thing.isascii() or len(thing) > 18 or thing != str(int(thing)):
        raise problem.not_found()
    return int(thing)


def the_one(found: Sequence[T], name: str, about: Callable[[T], tuple[str, str]]) -> T:
    """The only thing that was found. `about` says its id and its app, for the problem if there are several."""
    if not found:
        raise problem.not_found()
    if len(found) > 1:
        known = [{"id": id, "app": app} for id, app in map(about, found)]
        apps = ", ".join(one["app"] for one in known[:5])
        words = f"the apps {apps} have a {name!r}: say which by its id, or add ?app="
        raise Problem("ambiguous_name", words, existing=known)
    return found[0]


def new_name(name: str, what: str, *, pointer: str | None = None) -> str:
    """A name for something new. One with the form of an id is refused, because paths could not tell them apart."""
    try:
        names.check(name, what)
    except DefinitionError as error:
        words = str(error)
    else:
        if not ids.is_id(name.lower()):
            return name
        words = f"{what} must not have the form of an id, as {name!r} has"
    code = "bad_parameter" if pointer is None else "bad_field"
    raise Problem(code, words, flaws=[Flaw(code, words, pointer=pointer)])


def check_may_enqueue(call: Call, job: str, queue: str) -> None:
    """Refuses a token that is only for other jobs or queues."""
    for what, name, allowed in (("job", job, call.grant.jobs), ("queue", queue, call.grant.queues)):
        if allowed is not None and name not in allowed:
            raise Problem("wrong_scope", f"{call.grant.actor} may not enqueue for the {what} {name}")


def check_is_unlimited(call: Call) -> None:
    """Refuses a token that is only for some jobs or queues, where an execution of any job may start."""
    if call.grant.jobs is not None or call.grant.queues is not None:
        words = f"{call.grant.actor} is limited to some jobs or queues, and this may start others"
        raise Problem("wrong_scope", words)
