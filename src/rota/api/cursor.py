"""Cursors of lists: opaque, bound to the list, its filters and its namespace, and without any rights of their own."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

import msgspec

from rota.api.problem import Problem
from rota.api.query import Paged
from rota.domain.decoding import prepare

_VERSION = 1


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """`position` is the key of the last item shown; empty means the start of the list.

    With `is_back` the cursor leads to the page before `position`; empty then means the end. `check` is a hash of the
    position, the direction, the list and its filters; a cursor that does not match is refused.
    """

    version: int
    position: list[str]
    check: str
    is_back: bool = False


prepare(Cursor)


def fingerprint(namespace: str, path: str, query: Paged) -> str:
    """What a cursor is bound to: everything but the limit, the chosen fields and the cursor itself."""
    values: dict[str, Any] = msgspec.to_builtins(query)
    bound = {name: value for name, value in values.items() if name not in ("limit", "cursor", "fields")}
    text = msgspec.json.encode([namespace, path, bound], order="sorted")
    return hashlib.sha256(text).hexdigest()[:16]


def encode(position: list[str], digest: str, *, is_back: bool = False) -> str:
    data = msgspec.json.encode(Cursor(_VERSION, position, _check(position, digest, is_back), is_back))
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text: str, digest: str) -> Cursor:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = msgspec.json.decode(data, type=Cursor)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        found = None
    if found is None or found.version != _VERSION or found.check != _check(found.position, digest, found.is_back):
        raise refused()
    return found


def refused() -> Problem:
    return Problem("bad_cursor", "the cursor belongs to another list or other filters: start again without a cursor")


def _check(position: list[str], digest: str, is_back: bool) -> str:
    return hashlib.sha256(msgspec.json.encode([digest, position, is_back])).hexdigest()[:16]
