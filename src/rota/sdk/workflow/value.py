"""Symbolic values: what a workflow's function gets instead of values that are known only when the workflow runs.

A value can be passed to a step, its members and items can be named, and it can be compared. Everything else that
Python would do with it raises a WorkflowError that names the way out. `repr` works, for debuggers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from rota.domain.workflow import schema
from rota.domain.workflow.graph import Condition as ConditionData
from rota.domain.workflow.graph import Template
from rota.domain.workflow.reference import Key, Reference, parse
from rota.domain.workflow.schema import NoMember, Schema
from rota.sdk.workflow.build import Build

MARK = "<rota value "
_UNKNOWN = "the value is not known yet"
TRUTH = f"{_UNKNOWN}: write `with when(…):`, and `all_of`, `any_of`, `not_` instead of `and`, `or`, `not`"
_LIST = f"{_UNKNOWN}: use `job.map(x)` for each item, `x[0]` for one, `one_of(x, …)` instead of `in`"
_COMPUTING = f'{_UNKNOWN}: use `text("… {{day}}", day=x)` for a text, or do it in a job'
_METHODS = "values of later steps have no methods and cannot be changed: do it in a job"
_CONDITIONS = "a condition can only be given to `when`, `all_of`, `any_of` and `not_`"


class Symbol(NamedTuple):
    build: Build
    template: Template
    schema: Schema


class Value:
    """Stands for a value that is known later. Its state is in `__rota__`, to leave all other names to members."""

    __slots__ = ("__rota__",)
    __rota__: Symbol

    def __init__(self, symbol: Symbol) -> None:
        object.__setattr__(self, "__rota__", symbol)

    def __repr__(self) -> str:
        return f"{MARK}{shown(self.__rota__.template)}>"

    def __getattr__(self, name: str) -> Value:
        # Python and debuggers look for such names; no member of a value begins with an underscore by chance.
        if name.startswith("_") and name not in self.__rota__.schema.get("properties", {}):
            raise AttributeError(name)
        return _at(self, name)

    def __getitem__(self, key: Any) -> Value:
        if type(key) is Value:
            return _noted(self, f"{_UNKNOWN}, so it cannot be an index or a key: do it in a job")
        if isinstance(key, bool) or not isinstance(key, str | int):
            return _noted(self, "an item is named by a number or a text, not by a slice: do it in a job")
        return _at(self, key)

    def __iter__(self) -> Iterator[Value]:
        count = schema.fixed_length(self.__rota__.schema)
        if count is None:
            self.__rota__.build.refuse(_LIST)
        return iter([self[number] for number in range(count)])

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return _compared(self, "eq", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return _compared(self, "ne", other)

    def __lt__(self, other: object) -> Condition:
        return _compared(self, "lt", other)

    def __le__(self, other: object) -> Condition:
        return _compared(self, "le", other)

    def __gt__(self, other: object) -> Condition:
        return _compared(self, "gt", other)

    def __ge__(self, other: object) -> Condition:
        return _compared(self, "ge", other)


class ConditionSymbol(NamedTuple):
    build: Build
    data: ConditionData


class Condition:
    """The result of a comparison of values: whether it is true is known only later."""

    __slots__ = ("__rota__",)
    __rota__: ConditionSymbol

    def __init__(self, build: Build, data: ConditionData) -> None:
        object.__setattr__(self, "__rota__", ConditionSymbol(build, data))

    def __repr__(self) -> str:
        return f"<rota condition {self.__rota__.data}>"


def as_value(thing: object) -> Value | None:
    """The thing if it is a symbolic value. Its static type is that of the value it stands for."""
    return thing if type(thing) is Value else None


def reference_of(value: Value) -> Reference | None:
    """The reference of a value that is one step's result or a part of it; None for `first(…)` and the like."""
    template = value.__rota__.template
    return parse(template["$"]) if list(template) == ["$"] else None


def shown(template: Template) -> str:
    return str(template["$"]) if list(template) == ["$"] else str(template)


def _at(value: Value, key: Key) -> Value:
    build, template, kind = value.__rota__
    try:
        inner = schema.member(kind, key)
    except NoMember as error:
        is_method = isinstance(key, str) and any(hasattr(one, key) for one in (str, list, dict))
        return _noted(value, f"{error}; {_METHODS}" if is_method else str(error))
    return Value(Symbol(build, _extended(template, key, build), inner))


def _extended(template: Template, key: Key, build: Build) -> Template:
    if "$" in template:
        found = parse(template["$"])
        return {"$": str(Reference(found.root, (*found.path, key)))}
    if "$first" in template:
        return {"$first": [_extended(one, key, build) for one in template["$first"]]}
    name = next(iter(template)).removeprefix("$")
    raise build.note(
        f"the value of {name}(…) has no members here: name the member inside of it, such as {name}(x.member)"
    )


def _compared(value: Value, operator: str, other: object) -> Condition:
    from rota.sdk.workflow.templates import template_of  # lazy: templates are made of values

    build = value.__rota__.build
    return Condition(build, {operator: [value.__rota__.template, template_of(other, build, "a comparison")]})


def _noted(value: Value, message: str) -> Value:
    """Records a problem, and stands for the value that the operation would have had."""
    build, template, _ = value.__rota__
    build.note(message)
    return Value(Symbol(build, template, {}))


def _refusing(message: str) -> Callable[..., NoReturn]:
    """For operations whose result must have a type of Python, such as `len`."""

    def refuse(self: Any, *_: object) -> NoReturn:
        build: Build = self.__rota__.build
        build.refuse(message)

    return refuse


def _noting(message: str) -> Callable[..., Any]:
    """For operations that may have any result."""

    def note(self: Any, *_: object, **__: object) -> Any:
        if type(self) is Value:
            return _noted(self, message)
        self.__rota__.build.note(message)
        return self

    return note


_ARITHMETIC = "add sub mul truediv floordiv mod divmod pow matmul lshift rshift and or xor"
_BOTH_SIDES = " ".join(f"{side}{name}" for name in _ARITHMETIC.split() for side in ("", "r", "i"))
_CONTINUING = f"{_BOTH_SIDES} neg pos invert abs call setattr delattr setitem delitem".split()
_OTHERS = "neg pos invert abs round trunc floor ceil int float complex index str format bytes fspath hash"
_REFUSED = {
    Value: {
        "bool": TRUTH,
        "len contains reversed length_hint next": _LIST,
        f"{_BOTH_SIDES} {_OTHERS}": _COMPUTING,
        "call setattr delattr setitem delitem": _METHODS,
        "enter exit aenter aexit await aiter anext copy deepcopy reduce_ex": _COMPUTING,
    },
    Condition: {
        "bool": TRUTH,
        f"{_BOTH_SIDES} {_OTHERS} iter len contains call getitem eq ne lt le gt ge setattr": _CONDITIONS,
    },
}
for _kind, _messages in _REFUSED.items():
    _kind.__name__ = f"Symbolic{_kind.__name__}"  # For errors of other libraries: "SymbolicValue is …".
    for _names, _message in _messages.items():
        for _name in _names.split():
            setattr(_kind, f"__{_name}__", (_noting if _name in _CONTINUING else _refusing)(_message))
