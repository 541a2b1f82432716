"""Text for terminals: control characters that users wrote are shown as escapes and have no effect.

Names, errors and results may hold anything. Escape sequences could recolour or rewrite the screen, and invisible marks
such as the right-to-left override could make a line read as something else.
"""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rota.clock import MACHINE
from rota.domain import duration
from rota.domain.instant import MICROSECONDS

if TYPE_CHECKING:
    from rota.views.shape import Paused

SHORT_ID = 8
MINUTE_S = 60
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
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
    return "".join(json.dumps(char)[1:-1] if _is_hostile(char) and char != "\n" else char for char in text)


def short_id(id: str) -> str:
    """The end of an id, which commands understand: ids of the same second begin alike."""
    return id and f"…{id[-SHORT_ID:]}"


def clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def shortened(text: str, most: int) -> str:
    """The text; if it is too long, its beginning with a note that `--json` shows all of it."""
    if len(text) <= most:
        return text
    note = f" ({len(text):,} characters; --json shows all)"
    return clipped(text, max(1, most - len(note))) + note


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def now() -> datetime:
    return datetime.fromtimestamp(MACHINE.now() / MICROSECONDS, UTC)


def ago(at: datetime | None) -> str:
    """An instant relative to now, in whole seconds: `5 m ago`, `in 2 h`."""
    if at is None:
        return "-"
    passed_s = (now() - at).total_seconds()
    if abs(passed_s) < 1:
        return "just now" if passed_s >= 0 else "now"
    words = f"{abs(passed_s):.0f} s" if abs(passed_s) < MINUTE_S else duration.words(abs(passed_s))
    return f"{words} ago" if passed_s > 0 else f"in {words}"


def when(at: datetime) -> str:
    """An instant, exact and relative to now."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC ({ago(at)})"


def length(start: datetime | None, end: datetime | None) -> str:
    """The time between two instants."""
    return "-" if start is None or end is None else duration.words(max(0.0, (end - start).total_seconds()))


def short_length(seconds: float) -> str:
    """A duration as users write it: `2s`, `1.5s`, `4h`."""
    return duration.written(seconds)


def pause(paused: Paused | None) -> str:
    """Since when a queue, job or schedule is paused, by whom and why; empty if it is not."""
    if paused is None:
        return ""
    by = f" by {paused.by}" if paused.by else ""
    return f"paused {ago(paused.at)}{by}" + (f": {paused.note}" if paused.note else "")


def count(number: int, one: str) -> str:
    """`1 execution`, `2,000 executions`."""
    return f"{number:,} {one if number == 1 else one + 's'}"


def none_of(app: str | None, what: str, otherwise: str) -> str:
    """The words for an empty list: that this app has none, or `otherwise` if no app was named."""
    return otherwise if app is None else f"app {app} has no {what}: `rota jobs` and `rota workflows` list the apps"


def _is_hostile(char: str) -> bool:
    return unicodedata.category(char) in _HOSTILE


def _visible(char: str) -> str:
    return char.encode("unicode_escape").decode() if _is_hostile(char) else char
