"""The function of a job that has none: a command, an HTTP request, or a job of an installed executor."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from rota.domain import names
from rota.domain.errors import DefinitionError

Plain = str | int | float | bool


def stand_in(
    name: str,
    parameters: Mapping[str, Any],
    about: str,
    *,
    takes_others: bool = False,
    defaults: Mapping[str, Any] | None = None,
) -> Callable[..., NoReturn]:
    """A function that has the parameters of such a job, by name with their types, and cannot be called.

    With `takes_others` the job takes arguments of any other name too.
    """

    def nowhere(*args: Any, **kwargs: Any) -> NoReturn:
        raise DefinitionError(f"{name} is {about}: it can be enqueued, but not called here")

    named = {_checked(parameter, name): kind for parameter, kind in parameters.items()}
    default, empty = defaults or {}, inspect.Parameter.empty
    seen = [
        inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default.get(one, empty))
        for one, kind in named.items()
    ]
    if takes_others:
        others = next(one for one in ("others", "_others", "__others") if one not in parameters)
        seen.append(inspect.Parameter(others, inspect.Parameter.VAR_KEYWORD, annotation=Any))
    nowhere.__name__ = nowhere.__qualname__ = names.check(name, "a job's name")
    nowhere.__doc__ = ""
    nowhere.__annotations__ = named
    nowhere.__signature__ = inspect.Signature(seen)  # type: ignore[attr-defined]
    nowhere._takes_others = takes_others  # type: ignore[attr-defined]
    return nowhere


def _checked(parameter: str, job: str) -> str:
    if not parameter.isidentifier():
        raise DefinitionError(f"job {job!r}: a placeholder is a name such as {{month}}, not {{{parameter[:64]}}}")
    return parameter
