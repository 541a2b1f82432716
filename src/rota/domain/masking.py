"""Masks the literal values of a job's target that may be secrets, before it is stored and shown. References stay.

The database needs the target only to show it: a worker runs the target that its own code declares.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rota.domain import url

_PLACEHOLDERS = re.compile(r"(\{[A-Za-z_][A-Za-z0-9_]*\*?\})*")
_HARMLESS = frozenset({"accept", "accept-language", "cache-control", "content-language", "content-type", "prefer"})
"""Headers whose values are never secret."""
_SECRET = re.compile(
    r"password|passwd|passphrase|secret|credential|authorization|(api|access|private)[-_]?key"
    r"|(?<![a-z])(pass|pwd|tokens?|bearer|cookie|auth)(?![a-z])",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"(?P<name>[^=:\s/]+)(?P<sign>=|:\s*)(?P<value>.+)", re.DOTALL)


def masked(target: Mapping[str, Any]) -> dict[str, Any]:
    """A job's target without literal secrets."""
    match target.get("kind"):
        case "command":
            found = {"argv": words(target.get("argv", ())), "environment": _values(target.get("environment", {}))}
        case "http":
            headers = target.get("headers", {})
            found = {
                "url": _url(str(target.get("url", ""))),
                "headers": {
                    name: value if name.lower() in _HARMLESS else _value(value) for name, value in headers.items()
                },
                "query": _values(target.get("query", {})),
            }
        case _:
            return {name: _by_name(name, value) for name, value in target.items()}
    return {**target, **{name: value for name, value in found.items() if name in target}}


def is_secret(name: str, value: str) -> bool:
    """Whether a literal is named like a secret: a variable, a header or a parameter of a URL."""
    return _SECRET.search(name) is not None and _value(value) != value


def has_secret(template: str) -> bool:
    """Whether a URL has a password, or a parameter that is named like a secret."""
    pairs = (pair.partition("=") for pair in template.partition("?")[2].split("&"))
    return url.masked_text(template) != template or any(is_secret(name, value) for name, _, value in pairs)


def words(argv: Sequence[Any]) -> list[Any]:
    """The words of a command, with values masked that are named like a secret: `--password x`, `TOKEN=x`, `Cookie:
    x`."""
    found: list[Any] = []
    is_next_secret = False
    for word in argv:
        found.append(_value(word) if is_next_secret else _word(word))
        # The value of an option follows it as a word of its own.
        is_option = isinstance(word, str) and word.startswith("-") and _ASSIGNED.fullmatch(word) is None
        is_next_secret = is_option and _SECRET.search(word) is not None
    return found


def _word(word: Any) -> Any:
    if not isinstance(word, str):
        return word
    assigned = _ASSIGNED.fullmatch(word)
    if assigned is not None and _SECRET.search(assigned["name"]):
        return f"{assigned['name']}{assigned['sign']}{_value(assigned['value'])}"
    return url.masked_text(word)


def _url(template: str) -> str:
    place, mark, query = template.partition("?")
    pairs = (pair.partition("=") for pair in query.split("&"))
    return place + mark + "&".join(f"{name}{sign}{_value(value)}" for name, sign, value in pairs)


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in values.items()}


def _value(value: Any) -> Any:
    """Masks a literal. A reference, and a text of nothing but placeholders, stay as they are."""
    return value if not isinstance(value, str) or _PLACEHOLDERS.fullmatch(value) else url.MASK


def _by_name(name: str, value: Any) -> Any:
    """For a third-party executor: masks the values whose names sound like a secret."""
    if isinstance(value, Mapping):
        return {inner: _by_name(inner, one) for inner, one in value.items()}
    if isinstance(value, list | tuple):
        return [_by_name(name, one) for one in value]
    return _value(value) if _SECRET.search(name) else value
