"""What came back for a request: read no further than it is kept, and judged by nobody here."""

from __future__ import annotations

import re
import zlib
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from rota.domain.instant import MICROSECONDS

LONGEST_WAIT_S = 86_400.0
_CHARSETS = frozenset({"utf-8", "us-ascii", "iso-8859-1", "windows-1252", "utf-16"})


class Answer(msgspec.Struct, frozen=True):
    """What came back, up to a number of bytes."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_cut: bool
    is_readable: bool

    @property
    def text(self) -> str:
        charset = re.search(r"charset=\"?([\w-]+)", self.headers.get("content-type", ""))
        known = charset[1].lower() if charset and charset[1].lower() in _CHARSETS else "utf-8"
        return self.body.decode(known, "replace").replace("\x00", "␀")


class Unpacking:
    """The bytes of an answer, unpacked as they come and never more than `most`, however well they were packed."""

    def __init__(self, coding: str, most: int) -> None:
        self.body = bytearray()
        self.is_cut = False
        self.is_known = coding in ("", "identity", "gzip", "x-gzip", "deflate")
        self._most = most
        self._most_packed = 2 * most + 65_536  # Packing may add a little, but not for ever.
        self._coding = coding if self.is_known else "identity"
        self._unpacker: Any = None

    def add(self, data: bytes) -> None:
        if self._coding in ("", "identity"):
            self._keep(data)
            return
        self._most_packed -= len(data)
        self.is_cut = self._most_packed < 0
        while data and not self.is_cut:
            if self._unpacker is None or self._unpacker.eof:
                self._unpacker = zlib.decompressobj(self._window(data))
            self._keep(self._unpacker.decompress(data, self._most - len(self.body) + 1))
            data = self._unpacker.unconsumed_tail or self._unpacker.unused_data

    def end(self) -> None:
        if self._unpacker is not None and not self._unpacker.eof and not self.is_cut:
            raise zlib.error("the packed answer ends too early")

    def _keep(self, data: bytes) -> None:
        self.is_cut = len(self.body) + len(data) > self._most
        self.body += data[: self._most - len(self.body)]

    def _window(self, data: bytes) -> int:
        if self._coding != "deflate":
            return 16 + zlib.MAX_WBITS
        # Some servers leave out the frame that the standard asks for.
        return zlib.MAX_WBITS if data[0] & 0x0F == 8 else -zlib.MAX_WBITS


def retry_after_s(text: str, now: int) -> float | None:
    """The wait that a Retry-After header asks for, in seconds or by a date, at most a day; None if it is neither."""
    text = text.strip()
    if re.fullmatch(r"[0-9]{1,20}", text):
        return min(float(text), LONGEST_WAIT_S)
    try:
        when = parsedate_to_datetime(text)
        wait = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now / MICROSECONDS
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(wait, 0.0), LONGEST_WAIT_S)
