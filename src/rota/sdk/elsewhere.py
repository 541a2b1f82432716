"""Jobs without a function of the app: a command, an HTTP request, or what an installed executor runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from rota.domain import names
from rota.domain.errors import DefinitionError

Plain = str | int | float | bool


def stand_in(name: str, parameters: Mapping[str, Any], about: str) -> Callable[..., NoReturn]:
    """A function that has the parameters of such a job, by name with what they take, and cannot be called."""

    def nowhere(*args: Any, **kwargs: Any) -> NoReturn:
        raise DefinitionError(f"{name} is {about}: it can be enqueued, but not called here")

    named = {_checked(parameter, name): kind for parameter, kind in parameters.items()}
    nowhere.__name__ = nowhere.__qualname__ = names.check(name, "a job's name")
    nowhere.__doc__ = ""
    nowhere.__annotations__ = named
    nowhere.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, annotation=kind) for one, kind in named.items()]
    )
    return nowhere


def stand_in_for_any(name: str, parameters: Mapping[str, Any], about: str) -> Callable[..., NoReturn]:
    """The same for a job that takes whatever other arguments it is given too."""
    found = stand_in(name, parameters, about)
    others = next(one for one in ("others", "_others", "__others") if one not in parameters)
    anything = inspect.Parameter(others, inspect.Parameter.VAR_KEYWORD, annotation=Any)
    known = inspect.signature(found).parameters.values()
    found.__signature__ = inspect.Signature([*known, anything])  # type: ignore[attr-defined]
    found.takes_others = True  # type: ignore[attr-defined]
    return found


def _checked(parameter: str, job: str) -> str:
    if not parameter.isidentifier():
        raise DefinitionError(f"job {job!r}: a placeholder is a name such as {{month}}, not {{{parameter[:64]}}}")
    return parameter
