"""Arguments of steps as templates: JSON with references in place of symbolic values."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain import payload
from rota.domain.errors import ArgumentsError, WorkflowError
from rota.domain.workflow.graph import Template
from rota.sdk.workflow.build import Build
from rota.sdk.workflow.value import MARK, Condition, Value

_PLACE = "$rota-value"


def template_of(value: Any, build: Build, what: str) -> Template:
    """The value as a template. It may be a symbolic value, or a structure that holds some: a list, a dict, a dataclass.

    `what` names the value in errors.
    """
    if type(value) is Value:
        return _own(value, build)
    symbols: list[Value] = []

    def hook(one: Any) -> Any:
        if type(one) is Value:
            symbols.append(one)
            return {_PLACE: len(symbols) - 1}
        if type(one) is Condition:
            build.refuse(f"{what}: a condition is not a value: compute it in a job")
        if type(one) is msgspec.Raw:
            return msgspec.json.decode(one)
        raise TypeError(f"{type(one).__name__} is not JSON")

    _refuse_sets(value, build, what)
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=hook)
        plain = payload.decode(payload.encode(plain, what), what)
    except WorkflowError:
        raise
    except (TypeError, ValueError) as error:
        build.refuse(str(error) if isinstance(error, ArgumentsError) else f"{what} cannot be stored as JSON: {error}")
    return _placed(plain, symbols, build, what)


def _own(value: Value, build: Build) -> Template:
    if value.__rota__.build is not build:
        build.refuse(
            f"{value!r} belongs to another build, of workflow {value.__rota__.build.workflow!r}: "
            "values must not be kept outside of the function; pass them as arguments"
        )
    return value.__rota__.template


def _placed(plain: Any, symbols: list[Value], build: Build, what: str) -> Template:
    """JSON with the references in their places; an object that could be taken for a template is quoted."""
    if isinstance(plain, str) and MARK in plain:
        build.refuse(f'{what} holds the repr of a value: use `text("… {{day}}", day=x)`')
    if isinstance(plain, list):
        return [_placed(one, symbols, build, what) for one in plain]
    if not isinstance(plain, dict):
        return plain
    if list(plain) == [_PLACE]:
        return _own(symbols[plain[_PLACE]], build)
    if not any(name.startswith("$") for name in plain):
        return {name: _placed(one, symbols, build, what) for name, one in plain.items()}
    if _holds_value(plain):
        build.refuse(f"{what}: an object with a key that begins with $ cannot hold values of steps: do it in a job")
    return {"$literal": plain}


def _holds_value(plain: Any) -> bool:
    if isinstance(plain, dict):
        return _PLACE in plain or any(map(_holds_value, plain.values()))
    return isinstance(plain, list) and any(map(_holds_value, plain))


def _refuse_sets(value: Any, build: Build, what: str) -> None:
    if isinstance(value, set | frozenset):
        build.refuse(f"{what}: the order of a set is not the same in every process: pass a list, such as sorted(…)")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            if type(one) is not Value and type(one) is not Condition:
                _refuse_sets(one, build, what)
