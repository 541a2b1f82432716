"""The lines that an execution has written."""

from __future__ import annotations

from datetime import datetime

from rota.domain.status import TERMINAL, Status
from rota.store import notes
from rota.store.port import View
from rota.views.shape import Shape, shaped

PAGE = 1000
Position = tuple[int, int]
"""Fence and number of a line."""


class LogLine(Shape, frozen=True):
    """`line` counts from 1 within the attempt with this fence.

    The stream is stdout, stderr, log, or rota for Rota's own remarks.
    """

    fence: int
    line: int
    """The number of the line within its attempt."""
    at: datetime
    """When the line was written."""
    stream: str
    text: str
    """The text of the line."""


class Log(Shape, frozen=True):
    """Some lines, and whether the attempts that were asked for are over."""

    lines: list[LogLine]
    is_over: bool

    @property
    def is_full(self) -> bool:
        """Whether there may be more behind these lines already."""
        return len(self.lines) == PAGE


class LogPage(Shape, frozen=True):
    """Some lines of a log. Pass `next` as `after` to read the lines that follow.

    `has_more`: more lines exist already. `is_over`: the requested attempts have ended, so no further lines will come.
    """

    items: list[LogLine]
    """The lines, oldest first."""
    next: str | None
    """The parameter `after` of the next page; null if there is no line yet."""
    has_more: bool
    """Whether there are more lines now."""
    is_over: bool
    """Whether the requested attempts have ended, so that no further line comes."""
    status: Status


def log_page(
    view: View, namespace: str, id: str, after: Position, fence: int | None, stream: str | None, most: int
) -> LogPage:
    """Up to `most` lines after the position `after`.

    The status is read before the lines, so a page with `is_over` cannot miss lines that were written in between.
    """
    status, last = notes.progress(view, namespace, id)
    found = notes.lines(view, namespace, id, after, most + 1, fence, stream)
    lines = [shaped(LogLine, line, line=line.number) for line in found[:most]]
    position = (lines[-1].fence, lines[-1].line) if lines else after
    return LogPage(
        items=lines,
        next=None if position == notes.START else f"{position[0]}.{position[1]}",
        has_more=len(found) > most,
        is_over=status in TERMINAL or _is_past(fence, status, last),
        status=status,
    )


def log(view: View, namespace: str, id: str, after: Position, fence: int | None, stream: str | None) -> Log:
    """Up to `PAGE` lines after the position `after`."""
    status, last = notes.progress(view, namespace, id)
    found = notes.lines(view, namespace, id, after, PAGE, fence, stream)
    lines = [shaped(LogLine, line, line=line.number) for line in found]
    return Log(lines=lines, is_over=status in TERMINAL or _is_past(fence, status, last))


def _is_past(fence: int | None, status: Status, last: int) -> bool:
    """Whether the wanted attempt is over, though others may follow."""
    return fence is not None and (last > fence or (last == fence and status is not Status.RUNNING))
