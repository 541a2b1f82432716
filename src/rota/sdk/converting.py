"""What an executor is told, made of what a declaration says, in whose words it refuses what does not fit."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from rota.domain.errors import DefinitionError

S = TypeVar("S", bound=msgspec.Struct)
_FIELD = re.compile(r"at `\$\.(\w+)")
_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "list[str]": "a list of texts",
    "Sequence[str | Reference]": "a list of texts, or of references such as {'env': 'TOKEN'}",
    "list[int]": "a list of whole numbers",
    "list[int | str]": "a list of codes, such as [200, '2xx', '500-599']",
    "Mapping[str, str | Reference]": "a table of texts by name, or of references such as {'env': 'TOKEN'}",
}


def converted(data: dict[str, Any], kind: type[S], job: str, said: Mapping[str, str]) -> S:
    """`said` has the names of options that are not those of the fields that they become."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, DefinitionError):
            raise DefinitionError(f"job {job!r}: {error.__cause__}") from None
        raise DefinitionError(f"job {job!r}: {_readable(str(error), data, kind, said)}") from None


def _readable(message: str, data: Mapping[str, Any], kind: type[msgspec.Struct], said: Mapping[str, str]) -> str:
    found = _FIELD.search(message)
    if found is None or found[1] not in data:
        return message
    field = found[1]
    names = {field: option for option, field in said.items()}
    return f"{names.get(field, field)} must be {_wanted(kind.__annotations__[field])}, not {_shown(data[field])}"


def _wanted(annotation: str) -> str:
    plain = annotation.removesuffix(" | None")
    if plain.startswith("Literal"):
        *others, last = ast.literal_eval(plain.removeprefix("Literal"))
        return f"{', '.join(map(repr, others))} or {last!r}"
    return _WORDS.get(plain, plain)


def _shown(value: Any) -> str:
    """A list or a table by what it is, for what is wrong is somewhere in it, and there may be secrets beside it."""
    match value:
        case list() | tuple():
            return f"a list with {', '.join(sorted({type(one).__name__ for one in value})) or 'nothing'}"
        case Mapping():
            return f"a table with {', '.join(sorted({type(one).__name__ for one in value.values()})) or 'nothing'}"
        case _:
            return repr(value)[:64]
