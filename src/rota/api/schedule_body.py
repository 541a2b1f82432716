"""A schedule as requests give it: the options of the SDK in camelCase, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, cast

import msgspec

from rota.api.patch import patch_of
from rota.api.problem import bad_member
from rota.domain import cron, job_parameters, names, payload, rank
from rota.domain.errors import ArgumentsError, DefinitionError, UsageError, WorkflowError
from rota.domain.job import Definition
from rota.domain.schedule import Spec
from rota.sdk.schedule_options import When, specs
from rota.views.schedule_options import options
from rota.views.stored_json import decoded

Length = Annotated[float | str, msgspec.Meta(description='Seconds, or a text such as "90s" or "1h30m".')]
Moment = Annotated[datetime, msgspec.Meta(tz=True, description="RFC 3339 with an offset.")]
TRIGGERS = ("cron", "every", "after", "at")
_LEADING = re.compile(r"(?:a schedule's )?([a-z_]+)\b")


class ScheduleOptions(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=False
):
    """When it fires, and with which arguments. Exactly one of `cron`, `every`, `after` and `at` is given.

    Without `queue` and `priority` those of the job apply.
    """

    cron: str | None = None
    every: Length | None = None
    after: Length | None = None
    """How long after the end of one execution the next one starts, in seconds or as text."""
    at: Moment | list[Moment] | None = None
    """One time, or several, at which it fires."""
    tz: str | None = None
    phase: Length | None = None
    start: Moment | None = None
    end: Moment | None = None
    exclude: list[str] | None = None
    calendars: list[str] | None = None
    dst_gap: str | None = None
    dst_overlap: str | None = None
    catch_up: int | str | None = None
    window: Length | None = None
    overlap: str | None = None
    jitter: Length | None = None
    arguments: msgspec.Raw | None = None
    queue: str | None = None
    priority: int | str | None = None


class NewSchedule(ScheduleOptions, frozen=True, kw_only=True):
    """A schedule to make. Its name is that of the job unless another one is given."""

    job: str
    app: str | None = None
    name: str | None = None


_NAMES = dict(zip(NewSchedule.__struct_fields__, NewSchedule.__struct_encode_fields__, strict=True))
"""The names of the members in requests, by their names in Python."""
SchedulePatch = patch_of(NewSchedule, "SchedulePatch", fixed=("name", "app"))


def spec_of(wanted: ScheduleOptions, app: str, job: Definition, most_bytes: int) -> Spec:
    """The checked schedule of a job, or a problem that points at the wrong member."""
    given = [name for name in TRIGGERS if getattr(wanted, name) is not None]
    if len(given) != 1:
        words = "give exactly one of cron, every, after and at" + (f", not {' and '.join(given)}" if given else "")
        raise bad_member(f"/{given[-1]}", words) if given else bad_member("/cron", words, "missing_field")
    with problems_of_options():
        if wanted.queue is not None:
            job = msgspec.structs.replace(job, queue=names.check(wanted.queue, "queue: a queue's name"))
        if wanted.priority is not None:
            job = msgspec.structs.replace(job, priority=rank.level(wanted.priority))
        (found,) = specs(job, app, _when(wanted), _arguments(wanted, job, most_bytes))
    return found


def check_cron(text: str | msgspec.UnsetType | None) -> None:
    """Refuses a malformed expression. Before the transaction: expressions of hostile callers must not cost one."""
    try:
        if isinstance(text, str):
            cron.parse(text)
    except DefinitionError as error:
        raise bad_member("/cron", str(error), "bad_cron") from None


@contextmanager
def problems_of_options() -> Iterator[None]:
    """Turns what the engine says about an option into a problem that points at the member."""
    try:
        yield
    except ArgumentsError as error:
        raise bad_member("/arguments", str(error), "bad_arguments") from None
    except WorkflowError:
        raise
    except DefinitionError as error:
        found = _LEADING.match(str(error))
        name = found[1] if found and found[1] in ScheduleOptions.__struct_fields__ else ""
        if not name:
            raise
        pointer = _NAMES[name]
        raise bad_member(f"/{pointer}", pointer + str(error)[len(name) :]) from None
    except UsageError as error:
        raise bad_member("", str(error)) from None


def definition(name: str, app: str, spec: Spec) -> dict[str, Any]:
    """What a POST takes to make the same schedule again."""
    known = msgspec.structs.asdict(current(name, app, spec))
    known["arguments"] = decoded(spec.arguments)
    return {_NAMES[name]: known[name] for name in dict.fromkeys(("name", "app", "job", *known))}


def current(name: str, app: str, spec: Spec) -> NewSchedule:
    """A schedule that is there, in the form of a request."""
    return NewSchedule(name=name, app=app, **options(spec))


def _when(wanted: ScheduleOptions) -> When:
    values: Mapping[str, Any] = msgspec.structs.asdict(wanted)
    found: dict[str, Any] = {name: values[name] for name in When.__annotations__ if values.get(name) is not None}
    return cast("When", found)


def _arguments(wanted: ScheduleOptions, job: Definition, most_bytes: int) -> str:
    """The text is kept as it was sent, so that numbers keep their digits."""
    text = "{}" if wanted.arguments is None else bytes(wanted.arguments).decode()
    given = payload.decode(text, "arguments")
    if not isinstance(given, dict):
        raise ArgumentsError("arguments must be an object of values by name")
    job_parameters.check(job.name, given, job.parameters)
    payload.encode(given, f"{job.name}(): the arguments", most_bytes)
    return text
