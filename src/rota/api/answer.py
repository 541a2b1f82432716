"""What a handler returns: a status, headers, and a body or a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from rota.views.shape import to_json

JSON = "application/json"
NDJSON = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`stream` instead of a body is sent piece by piece. A `secret` body is never compressed nor kept.

    `release` is called when the answer was sent or given up. A HEAD, or a client that has left, never starts the
    stream, so what was taken for the stream before cannot be released by the stream itself.
    """

    status: int = 200
    body: bytes | None = None
    media: str = JSON
    headers: dict[str, str] = {}
    stream: AsyncIterator[bytes] | None = None
    is_secret: bool = False
    release: Callable[[], None] | None = None


def shown(value: Any, status: int = 200, *, headers: dict[str, str] | None = None, is_secret: bool = False) -> Answer:
    """A shape, a list of shapes or plain values as JSON."""
    return Answer(status=status, body=to_json(value).encode(), headers=headers or {}, is_secret=is_secret)


def created(value: Any, location: str, *, headers: dict[str, str] | None = None, is_secret: bool = False) -> Answer:
    return shown(value, 201, headers={"Location": location, **(headers or {})}, is_secret=is_secret)


def no_content() -> Answer:
    return Answer(status=204)
