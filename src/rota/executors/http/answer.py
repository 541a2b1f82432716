"""The answer to a request."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

import msgspec

from rota.domain.instant import MICROSECONDS

LONGEST_WAIT_S = 86_400.0
_CHARSETS = frozenset({"utf-8", "us-ascii", "iso-8859-1", "windows-1252", "utf-16"})


class Answer(msgspec.Struct, frozen=True):
    """Status, headers and as much of the body as was read; `is_cut` if there was more."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_cut: bool

    @property
    def is_readable(self) -> bool:
        """Whether the body is as requests ask for it: not compressed."""
        return self.headers.get("content-encoding", "identity").strip().lower() in ("", "identity")

    @property
    def text(self) -> str:
        charset = re.search(r"charset=\"?([\w-]+)", self.headers.get("content-type", ""))
        known = charset[1].lower() if charset and charset[1].lower() in _CHARSETS else "utf-8"
        return self.body.decode(known, "replace").replace("\x00", "␀")


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
