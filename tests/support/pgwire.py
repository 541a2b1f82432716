"""As much of PostgreSQL's wire protocol as it takes to see a COMMIT go by."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

_ENCRYPTION = {80877103, 80877104}
"""SSLRequest and GSSENCRequest: what a client may say before its first real message."""
_PROTOCOL_3 = 3
_COMMIT = re.compile(rb"(?:^|;)\s*(?:COMMIT|END)\b", re.IGNORECASE)
_COMMITTED = b"COMMIT\0"


class Message:
    """One whole message, and what the proxy needs to know about it."""

    def __init__(self, raw: bytes, *, is_commit: bool = False, asks_for_encryption: bool = False) -> None:
        self.raw = raw
        self.is_commit = is_commit
        """From a client: asks the server to commit. From a server: says that it has."""
        self.asks_for_encryption = asks_for_encryption


class Requests:
    """The stream from a client, cut into messages."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_greeting = True
        self._prepared: dict[bytes, bool] = {}
        self._portals: dict[bytes, bool] = {}

    def feed(self, data: bytes) -> Iterator[Message]:
        self._rest += data
        while raw := self._next():
            self._rest = self._rest[len(raw) :]
            yield self._greeting(raw) if self._is_greeting else Message(raw, is_commit=self._is_commit(raw))

    def _next(self) -> bytes:
        return _whole(self._rest, at=0 if self._is_greeting else 1)

    def _greeting(self, raw: bytes) -> Message:
        (code,) = struct.unpack_from("!I", raw, 4)
        self._is_greeting = code >> 16 != _PROTOCOL_3
        return Message(raw, asks_for_encryption=code in _ENCRYPTION)

    def _is_commit(self, raw: bytes) -> bool:
        """A commit is a simple query, or a statement that is parsed, bound to a portal, and executed."""
        kind, body = raw[:1], raw[5:]
        match kind:
            case b"Q":
                return bool(_COMMIT.search(body))
            case b"P":
                name, text, *_ = body.split(b"\0", 2)
                self._prepared[name] = bool(_COMMIT.search(text))
            case b"B":
                portal, name, *_ = body.split(b"\0", 2)
                self._portals[portal] = self._prepared.get(name, False)
            case b"E":
                return self._portals.get(body.split(b"\0", 1)[0], False)
            case _:
                pass
        return False


class Answers:
    """The stream from a server, cut into messages. It must not have been asked for encryption."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        self._rest += data
        while raw := _whole(self._rest, at=1):
            self._rest = self._rest[len(raw) :]
            # A transaction that had failed answers COMMIT with ROLLBACK, so the answer tells what the request cannot.
            yield Message(raw, is_commit=raw[:1] == b"C" and raw[5:] == _COMMITTED)


def _whole(data: bytes, at: int) -> bytes:
    """The first message, whose length stands at an offset; nothing if it is not all there."""
    if len(data) < at + 4:
        return b""
    (length,) = struct.unpack_from("!I", data, at)
    return data[: at + length] if len(data) >= at + length else b""
