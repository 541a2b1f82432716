"""A function's signature as a contract: arguments are checked against it when they come in and again when they run.

Arguments are one JSON object by parameter name. The parameters become a struct type, so msgspec checks names and types
in one pass, and gives the function back what its annotations promise (a datetime, a dataclass, an enum).
"""

from __future__ import annotations

import contextlib
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rota.domain import payload
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.executors.context import Context

_PLAIN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Signature:
    """Binds, encodes and decodes the arguments of one function."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._name = name
        self._what = f"{name}(): the arguments"
        hints, whole = _hints(function), inspect.signature(function)
        _refuse_pydantic(hints, name)
        self.context_parameter = _context_parameter(whole, hints)
        self._signature = _for_callers(whole, hints, self.context_parameter)
        self.takes_others = bool(getattr(function, "_takes_others", False))
        """Whether arguments of any other name are accepted; only jobs without a function do so."""
        self._struct = _struct(name, self._signature, hints, takes_others=self.takes_others)
        self._decoder = msgspec.json.Decoder(self._struct)
        self.result_type = _supported(hints.get("return", Any))
        # The decoder does not look into values of these.
        self._reads_all = "msgspec.Raw" not in repr(hints) and not self.takes_others
        parameters = self._signature.parameters.values()
        self._is_plain = all(p.kind in _PLAIN for p in parameters)
        self.positional = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        self.first = next((p.name for p in list(parameters)[:1] if p.kind in _PLAIN), None)
        """The first parameter; None if there is none, or if it takes several arguments."""
        self.required = {p.name for p in parameters if p.default is p.empty}
        self._known = {p.name: None for p in parameters}
        by_place = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        needs_names = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
        self._least = len(by_place) + 1 if needs_names else sum(p.default is p.empty for p in by_place)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any], most_bytes: int) -> str:
        """The arguments of a call as JSON text; an ArgumentsError names what does not fit."""
        text = payload.encode(self.bind(args, kwargs), self._what, most_bytes, is_read_next=self._reads_all)
        self.check(text)
        return text

    def encode_many(self, calls: Sequence[Any], most_bytes: int) -> list[str]:
        """`encode` of each call, which is a dict of arguments by name, a tuple of positional ones, or one argument."""
        names, counts = self.positional, range(self._least, len(self.positional) + 1) if self._is_plain else ()
        bound = [
            dict(zip(names, call, strict=False))
            if type(call) is tuple and len(call) in counts
            else self.bind(*args_and_kwargs(call))
            for call in calls
        ]
        lines = payload.encode_flat(bound, most_bytes)
        if lines is not None:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeError):
                self._decoder.decode_lines(lines)
                return lines.split("\n") if calls else []
        # The error of a single call names the argument.
        return [self.encode(*args_and_kwargs(call), most_bytes) for call in calls]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name; an ArgumentsError names what is missing or too much."""
        arguments = self._bound(args, kwargs)
        if arguments is not None:
            return arguments
        try:
            arguments = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentsError(f"{self._name}(): {error}; it takes {self.describe()}") from None
        return kwargs if self.takes_others else arguments

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments by name, in the order of the parameters; None if that takes a closer look.

        The same as `inspect` finds, for ordinary functions and calls that fit, in a fraction of the time.
        """
        if not self._is_plain or len(args) > len(self.positional):
            return None
        given = dict(zip(self.positional, args, strict=False))
        if not kwargs and len(args) >= self._least:
            return given
        if kwargs:
            if not given.keys().isdisjoint(kwargs):
                return None
            given |= kwargs
            given = {name: given[name] for name in self._known if name in given}
            if len(given) < len(args) + len(kwargs):
                return None
        return given if self.required <= given.keys() and given.keys() <= self._known.keys() else None

    def check(self, text: str) -> None:
        """Refuses arguments that the function could not be called with."""
        self._decode(text)

    def call_with(self, text: str) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for the function, from stored JSON."""
        decoded = self._decode(text)
        if not self._is_plain:
            return self._spread(decoded)
        given = msgspec.structs.asdict(decoded)
        if len(self.required) < len(given):
            given = {name: value for name, value in given.items() if value is not msgspec.UNSET}
        return [], given

    def takes(self, name: str) -> bool:
        """Whether an argument of that name can be given."""
        return self.takes_others or name in self._known

    def is_by_name(self, name: str) -> bool:
        """Whether the parameter takes no positional argument."""
        return self._signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY

    def kinds(self) -> dict[str, Any]:
        """The type of each parameter, Any where JSON cannot carry it."""
        return {field.name: _always_there(field.type) for field in msgspec.structs.fields(self._struct)}

    def defaults(self) -> dict[str, Any]:
        """The default of each parameter that has one."""
        return {p.name: p.default for p in self._signature.parameters.values() if p.default is not p.empty}

    def describe(self) -> str:
        """The parameters as a person would write them."""
        return re.sub(r" ->.*$", "", str(self._signature))

    def parameters(self) -> dict[str, Any]:
        """The parameters as data, for the job's definition, which sorts them by name: so each has its `place`."""
        return {
            name: {
                "type": _type_name(p),
                "required": p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD),
                "place": place,
            }
            | ({"first": True} if name == self.first else {})
            | ({"others": True} if self.takes_others and p.kind is p.VAR_KEYWORD else {})
            for place, (name, p) in enumerate(self._signature.parameters.items())
        }

    def _decode(self, text: str) -> Any:
        try:
            return self._decoder.decode(text)
        except msgspec.ValidationError as error:
            raise ArgumentsError(f"{self._name}(): {_readable(str(error))}; it takes {self.describe()}") from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ArgumentsError(f"{self._name}(): the arguments are not valid JSON: {error}") from None

    def _spread(self, decoded: Any) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in self._signature.parameters.items():
            value = getattr(decoded, name)
            if value is msgspec.UNSET:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[name] = value
            else:
                positional.append(value)
        return positional, named


def args_and_kwargs(call: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call of a bulk enqueue: a dict of arguments by name, a tuple of positional ones, or one argument."""
    if isinstance(call, dict):
        return (), call
    return (call if isinstance(call, tuple) else (call,)), {}


def _type_name(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation
    if kind is parameter.empty:
        return "any"
    # Postponed annotations are text already; formatting them would add quotes.
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    # `Annotated[int, check]` names the function with its address, which differs in each process: with it, every start
    # of a process would make a new version of the job and a new deploy.
    return _ADDRESS.sub("", text)


def _readable(message: str) -> str:
    """msgspec's message with the argument first: "argument 'to': expected `str`, got `int`"."""
    where = _AT.search(message)
    plain = _AT.sub("", message).replace("Object contains unknown field", "there is no argument")
    plain = plain.replace("Object missing required field", "missing argument")
    return f"argument {where[1]!r}: {plain[0].lower()}{plain[1:]}" if where and where[1] else plain


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        return {}  # An annotation that cannot be resolved is no reason to refuse the job: it is not checked.


def _refuse_pydantic(hints: dict[str, Any], job: str) -> None:
    """msgspec takes such an annotation for a custom type, and would then refuse every value."""
    for name, hint in hints.items():
        for kind in _classes(hint):
            if any(base.__module__.partition(".")[0] in ("pydantic", "pydantic_core") for base in kind.__mro__):
                where = "its result" if name == "return" else f"parameter {name!r}"
                raise DefinitionError(
                    f"job {job!r}: {where} is {kind.__name__} of pydantic, which cannot be stored: "
                    "use a dataclass, or a dict that model_dump(mode='json') makes"
                )


def _classes(hint: Any) -> Iterator[type]:
    """The classes in an annotation, such as `Order` in `list[Order] | None`."""
    if isinstance(hint, type):
        yield hint
    for part in typing.get_args(hint):
        yield from _classes(part)


def _context_parameter(signature: inspect.Signature, hints: dict[str, Any]) -> str | None:
    annotations = {name: hints.get(name, parameter.annotation) for name, parameter in signature.parameters.items()}
    return next((name for name, kind in annotations.items() if kind in (Context, "Context", "rota.Context")), None)


def _for_callers(signature: inspect.Signature, hints: dict[str, Any], context: str | None) -> inspect.Signature:
    """The signature without the context, and with postponed annotations resolved where that is possible."""
    parameters = [
        parameter.replace(annotation=hints.get(name, parameter.annotation))
        for name, parameter in signature.parameters.items()
        if name != context
    ]
    return signature.replace(parameters=parameters)


def _struct(
    name: str, signature: inspect.Signature, hints: dict[str, Any], *, takes_others: bool = False
) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in signature.parameters.values():
        kind: Any = _supported(hints.get(parameter.name, Any))
        if parameter.kind is parameter.VAR_POSITIONAL:
            fields.append((parameter.name, _optional(list[kind]), msgspec.UNSET))
        elif parameter.kind is parameter.VAR_KEYWORD and takes_others:
            continue
        elif parameter.kind is parameter.VAR_KEYWORD:
            fields.append((parameter.name, _optional(dict[str, kind]), msgspec.UNSET))
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, _optional(kind), msgspec.UNSET))
    try:
        return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=not takes_others)
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"job {name!r}: its parameters cannot be used: {error}") from None


def _supported(kind: Any) -> Any:
    """The annotation, or Any if JSON cannot carry it: then only the name of an argument is checked."""
    if typing.get_origin(kind) is Iterable:
        kind = list[typing.get_args(kind)]  # type: ignore[misc]
    try:
        msgspec.json.Decoder(kind)
    except (TypeError, NotImplementedError):
        return Any
    return kind


def _always_there(kind: Any) -> Any:
    """The opposite of `_optional`."""
    kinds = [one for one in typing.get_args(kind) if one is not msgspec.UnsetType]
    return typing.Union[tuple(kinds)] if len(kinds) < len(typing.get_args(kind)) else kind  # noqa: UP007


def _optional(kind: Any) -> Any:
    """A type that may also be left out. `|` would not do: an annotation may be a string or None."""
    return typing.Union[kind, msgspec.UnsetType]  # noqa: UP007
