"""Templates of jobs: a definition in which `{"$parameter": "name"}` stands for a value that each job gives.

A parameter becomes a whole value, never a part of a text: of a command it is one word, whatever it contains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rota.domain import json_schema
from rota.domain.errors import DefinitionError

MARK = "$parameter"
_ABOUT = {"minimum", "maximum", "minLength", "maxLength", "type", "description"}
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_TEXTS = ("command", "environment", "directory", "http")
"""Members whose texts may have placeholders such as {month}: a value of a parameter must not be taken for one."""


def check(parameters: Mapping[str, Any], job: Mapping[str, Any]) -> None:
    """Raises DefinitionError if a parameter is described wrongly, or the job uses one that is not described."""
    for name, about in parameters.items():
        _check_parameter(name, about)
    command = job.get("command")
    if isinstance(command, list) and command and _named(command[0]) is not None:
        raise DefinitionError("job/command/0: the program of a command cannot be a parameter")
    used = set(_used(job))
    if unknown := sorted(used - parameters.keys()):
        raise DefinitionError(f"the job uses a parameter {unknown[0]!r}, which is not among the parameters")
    if unused := sorted(parameters.keys() - used):
        raise DefinitionError(f'the job does not use the parameter {unused[0]!r}: write {{"{MARK}": "{unused[0]}"}}')


def filled(parameters: Mapping[str, Any], job: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The definition with the values; raises BadValues for values that do not fit."""
    values = {name: about["default"] for name, about in parameters.items() if "default" in about} | dict(given)
    if found := json_schema.faults(schema(parameters), values):
        raise BadValues(found)
    return {name: _filled(value, values, is_text=name in _TEXTS, is_word=False) for name, value in job.items()}


def schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of the values."""
    properties = {}
    for name, about in parameters.items():
        properties[name] = {word: value for word, value in about.items() if word in _ABOUT}
        if "choices" in about:
            properties[name]["enum"] = about["choices"]
    required = [name for name, about in parameters.items() if "default" not in about]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


class BadValues(DefinitionError):
    """Values that do not fit the parameters; `faults` has a JSON pointer for each."""

    def __init__(self, faults: list[json_schema.Fault]) -> None:
        super().__init__("; ".join(f"{pointer} {words}" for pointer, words in faults[:3]))
        self.faults = faults


def _check_parameter(name: str, about: Any) -> None:
    if not name.isidentifier():
        raise DefinitionError(f"a parameter is named like month, not {name[:64]!r}")
    if not isinstance(about, dict) or about.get("type") not in _TYPES:
        raise DefinitionError(f"parameter {name}: needs a type, which is one of {', '.join(_TYPES)}")
    if unknown := sorted(about.keys() - _ABOUT - {"default", "choices"}):
        raise DefinitionError(f"parameter {name}: there is no {unknown[0]!r}")
    if "choices" in about and not (isinstance(about["choices"], list) and about["choices"]):
        raise DefinitionError(f"parameter {name}: choices must be a list with at least one value")
    only = schema({name: about})
    json_schema.check_schema(only)
    values = ([about["default"]] if "default" in about else []) + about.get("choices", [])
    for value in values:
        if found := json_schema.faults(only, {name: value}):
            raise DefinitionError(f"parameter {name}: the value {value!r} {found[0][1]}")


def _named(value: Any) -> str | None:
    """The parameter that a value stands for."""
    if isinstance(value, dict) and value.keys() == {MARK}:
        return str(value[MARK])
    return None


def _used(value: Any) -> Iterator[str]:
    if (name := _named(value)) is not None:
        yield name
    elif isinstance(value, dict):
        for one in value.values():
            yield from _used(one)
    elif isinstance(value, list):
        for one in value:
            yield from _used(one)


def _filled(value: Any, values: Mapping[str, Any], *, is_text: bool, is_word: bool) -> Any:
    if (name := _named(value)) is not None:
        return _literal(values.get(name), is_text=is_text, is_word=is_word)
    if isinstance(value, dict):
        return {word: _filled(one, values, is_text=is_text, is_word=is_text) for word, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, values, is_text=is_text, is_word=is_text) for one in value]
    return value


def _literal(value: Any, *, is_text: bool, is_word: bool) -> Any:
    if is_word and isinstance(value, bool):
        value = "true" if value else "false"
    elif is_word and isinstance(value, int | float):
        value = str(value)
    return value.replace("{", "{{").replace("}", "}}") if is_text and isinstance(value, str) else value
