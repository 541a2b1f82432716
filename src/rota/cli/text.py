"""Text for terminals: what users wrote is shown as what it is, never obeyed.

Names, errors and results may hold anything. Escape sequences could recolour or rewrite the screen, and marks such as
the right-to-left override could make a line read as what it is not; both are shown as escapes.
"""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

from rota.domain import duration
from rota.domain import size as sizes

MICROSECONDS = 1_000_000
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


def iso(instant: int | None) -> str | None:
    """An instant as programs read it: ISO 8601, UTC, always with microseconds. No calendar has all that is stored."""
    if instant is None:
        return None
    seconds, rest = divmod(instant, MICROSECONDS)
    exact = _on_calendar(instant)
    return f"{seconds} s after 1970" if exact is None else f"{exact:%Y-%m-%dT%H:%M:%S}.{rest:06d}Z"


def ago(instant: int | None, now: int) -> str:
    """An instant as people say it."""
    if instant is None:
        return "-"
    distance = duration.words(abs(now - instant) / MICROSECONDS)
    return f"{distance} ago" if instant <= now else f"in {distance}"


def when(instant: int, now: int) -> str:
    """An instant for people, exact and relative."""
    exact = _on_calendar(instant)
    if exact is None:
        return f"in the far {'past' if instant < now else 'future'} ({ago(instant, now)})"
    return f"{exact:%Y-%m-%d %H:%M:%S} UTC ({ago(instant, now)})"


def length(start: int | None, end: int | None) -> str:
    """How long something took."""
    return "-" if start is None or end is None else duration.words(max(0, end - start) / MICROSECONDS)


def size(count: int) -> str:
    """Bytes for people, in the units in which they say how much memory a job may have."""
    return sizes.words(count)


def count(number: int, one: str, many: str = "") -> str:
    """`1 execution`, `2,000 executions`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _on_calendar(instant: int) -> datetime | None:
    """To the second; `None` before the year 1 and after 9999."""
    try:
        return datetime.fromtimestamp(instant // MICROSECONDS, UTC)
    except (ValueError, OverflowError, OSError):
        return None


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
