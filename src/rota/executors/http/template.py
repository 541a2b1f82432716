"""Texts of a request with placeholders: `{name}` stands for an argument, and `{{name}}` for the text `{name}`.

All other braces are literal, because JSON is full of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from rota.domain.errors import ArgumentsError, DefinitionError
from rota.executors.http import address

CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TOKEN = re.compile(rf"\{{\{{\{{(?P<between>{_NAME})\}}\}}\}}|\{{\{{(?P<itself>{_NAME})\}}\}}|\{{(?P<alone>{_NAME})\}}")

Written = Callable[[str, str], str]
"""The text for a placeholder, from its name and the text before it."""


def names(texts: Iterable[str]) -> list[str]:
    """The names of all placeholders, in order."""
    found = (_name_in(token) for text in texts for token in _TOKEN.finditer(text))
    return list(dict.fromkeys(name for name in found if name is not None))


def values(body: str, content_type: str) -> frozenset[str]:
    """The names whose arguments may be lists and tables too: those that a JSON body has outside of quotes only."""
    if not _is_json(_kind(content_type)):
        return frozenset()
    found = [(name, _is_quoted(body[: token.start()])) for token in _TOKEN.finditer(body) if (name := _name_in(token))]
    return frozenset(name for name, _ in found) - {name for name, is_quoted in found if is_quoted}


def url(template: str, more: Mapping[str, str], arguments: dict[str, Any]) -> str:
    """The URL, with every argument encoded so that it stays within the part of the path or query it was put in.

    `more` is added to its query.
    """

    def encoded(name: str, _: str) -> str:
        return quote(_single(name, arguments), safe="")

    parts = address.URL.fullmatch(template)
    assert parts is not None  # The definition was checked.
    segments = []
    for segment in parts["path"].split("/"):
        text = _filled(segment, encoded)
        if text != segment and unquote(text) in ("", ".", ".."):
            raise ArgumentsError(f"the part {segment} of the path cannot be {unquote(text)!r}")
        segments.append(text)
    query = _filled(parts["query"] or "", encoded)
    added = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in more.items())
    mark = "" if not added else "&" if query.strip("?") else "" if query else "?"
    return "".join((parts["start"], "/".join(segments), query, mark, added))


def text(template: str, arguments: dict[str, Any]) -> str:
    return _filled(template, lambda name, _: _single(name, arguments))


def header(name: str, template: str, arguments: dict[str, Any]) -> str:
    value = text(template, arguments).strip(" \t")
    if CONTROL.search(value):
        raise ArgumentsError(f"the header {name} cannot hold a line break or a control character")
    return value


def body(template: str, content_type: str, arguments: dict[str, Any]) -> bytes:
    kind = _kind(content_type)
    if _is_json(kind):
        return _filled(template, lambda name, before: _as_json(name, before, arguments)).encode()
    if kind == "application/x-www-form-urlencoded":
        return _filled(template, lambda name, _: quote_plus(_single(name, arguments))).encode()
    return _filled(template, lambda name, _: _single(name, arguments)).encode()


def check_body(template: str, content_type: str) -> None:
    """Raises DefinitionError if a text that is to be JSON cannot be, whatever it is filled with."""
    if not template or not _is_json(_kind(content_type)):
        return
    try:
        json.loads(_filled(template, lambda _, before: "1" if _is_quoted(before) else '""'))
    except ValueError as error:
        raise DefinitionError(
            f"an HTTP job's body is no JSON, whatever is put in: {error}. Braces of JSON are not doubled there; "
            "only {{name}} stands for {name} itself. For a body of another kind say content_type="
        ) from None


def _filled(template: str, written: Written) -> str:
    def put(token: re.Match[str]) -> str:
        name = _name_in(token)
        if name is None:
            return token[0][1:-1]
        text = written(name, template[: token.start()])
        return f"{{{text}}}" if token["between"] else text

    return _TOKEN.sub(put, template)


def _name_in(token: re.Match[str]) -> str | None:
    return token["alone"] or token["between"]


def _argument(name: str, arguments: dict[str, Any]) -> Any:
    if name not in arguments:
        raise ArgumentsError(f"the request needs the argument {name!r}, which was not given")
    return arguments[name]


def _single(name: str, arguments: dict[str, Any]) -> str:
    value = _argument(name, arguments)
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise ArgumentsError(f"the argument {name!r} is put into the request, so it must be a text, number, true or false")


def _as_json(name: str, before: str, arguments: dict[str, Any]) -> str:
    """A placeholder between quotes becomes a piece of that text, any other a value."""
    if _is_quoted(before):
        return json.dumps(_single(name, arguments), ensure_ascii=False)[1:-1]
    return json.dumps(_argument(name, arguments), ensure_ascii=False)


def _is_quoted(before: str) -> bool:
    return re.sub(r"\\.", "", before).count('"') % 2 == 1


def _kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")
