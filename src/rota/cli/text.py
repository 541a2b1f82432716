"""Text for terminals: what users wrote is shown as what it is, never obeyed.

Names, errors and results may hold anything. Escape sequences could recolour or rewrite the screen, and marks such as
the right-to-left override could make a line read as what it is not; both are shown as escapes.
"""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import TYPE_CHECKING

from rota.domain import duration
from rota.domain import size as sizes

if TYPE_CHECKING:
    from rota.views.shape import Paused

# Controls, invisible marks, surrogates, private use, unassigned, and the separators that start a new line.
_HOSTILE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_NAMED = {"\n": "⏎", "\t": " ", "\r": "⏎"}


def harmless(text: str) -> str:
    """One line in which every character is visible and none has an effect."""
    text = text.replace("\r\n", "\n")
    if text.isprintable():
        return text
    return "".join(_NAMED.get(char) or _visible(char) for char in text)


def harmless_lines(text: str) -> list[str]:
    """The same for text of several lines, such as a traceback."""
    return [harmless(line) for line in text.replace("\r\n", "\n").expandtabs(4).split("\n")]


def harmless_json(text: str) -> str:
    """JSON text with the same value, in which hostile characters are escaped as JSON escapes them."""
    if text.isprintable():
        return text
    return "".join(_json_escape(char) if _is_hostile(char) and char != "\n" else char for char in text)


def clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(_char_width(char) for char in text)


def ago(at: datetime | None, now: datetime) -> str:
    """An instant as people say it."""
    if at is None:
        return "-"
    distance = duration.words(abs((now - at).total_seconds()))
    return f"{distance} ago" if at <= now else f"in {distance}"


def when(at: datetime, now: datetime) -> str:
    """An instant for people, exact and relative."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC ({ago(at, now)})"


def length(start: datetime | None, end: datetime | None) -> str:
    """How long something took."""
    return "-" if start is None or end is None else duration.words(max(0.0, (end - start).total_seconds()))


def pause(paused: Paused | None, now: datetime) -> str:
    """Since when something is paused, by whom and why; empty if it is not."""
    if paused is None:
        return ""
    by = f" by {paused.by}" if paused.by else ""
    return f"paused {ago(paused.at, now)}{by}" + (f": {paused.note}" if paused.note else "")


def size(count: int) -> str:
    """Bytes for people, in the units in which they say how much memory a job may have."""
    return sizes.words(count)


def count(number: int, one: str, many: str = "") -> str:
    """`1 execution`, `2,000 executions`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _is_hostile(char: str) -> bool:
    return unicodedata.category(char) in _HOSTILE


def _visible(char: str) -> str:
    if not _is_hostile(char):
        return char
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json_escape(char: str) -> str:
    number = ord(char)
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"


def _char_width(char: str) -> int:
    if char < "\x7f":
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
