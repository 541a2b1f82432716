"""Jobs without a function of the app: a command, an HTTP request, or what an installed executor runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rota.domain import names
from rota.domain.errors import DefinitionError

Plain = str | int | float | bool
Several = Plain | list[Plain]


def stand_in(name: str, parameters: Sequence[str], kind: Any, about: str) -> Callable[..., NoReturn]:
    """A function that has the parameters of such a job, and cannot be called."""

    def nowhere(*args: Any, **kwargs: Any) -> NoReturn:
        raise DefinitionError(f"{name} is {about}: it can be enqueued, but not called here")

    named = [_checked(parameter, name) for parameter in parameters]
    nowhere.__name__ = nowhere.__qualname__ = names.check(name, "a job's name")
    nowhere.__doc__ = ""
    nowhere.__annotations__ = dict.fromkeys(named, kind)
    nowhere.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, annotation=kind) for one in named]
    )
    return nowhere


def stand_in_for_any(name: str, parameters: Sequence[str], kind: Any, about: str) -> Callable[..., NoReturn]:
    """The same for a job that takes whatever other arguments it is given too."""
    found = stand_in(name, parameters, kind, about)
    anything = inspect.Parameter("others", inspect.Parameter.VAR_KEYWORD, annotation=Any)
    known = inspect.signature(found).parameters.values()
    found.__signature__ = inspect.Signature([*known, anything])  # type: ignore[attr-defined]
    found.takes_others = True  # type: ignore[attr-defined]
    return found


def _checked(parameter: str, job: str) -> str:
    if not parameter.isidentifier():
        raise DefinitionError(f"job {job!r}: a placeholder is a name such as {{month}}, not {{{parameter[:64]}}}")
    return parameter
