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
    at: datetime
    stream: str
    text: str


class Log(Shape, frozen=True):
    """Some lines, and whether the attempts that were asked for are over."""

    lines: list[LogLine]
    is_over: bool

    @property
    def is_full(self) -> bool:
        """Whether there may be more behind these lines already."""
        return len(self.lines) == PAGE


def log(view: View, namespace: str, id: str, after: Position, fence: int | None, stream: str | None) -> Log:
    """Up to `PAGE` lines behind `after`."""
    status, last = notes.progress(view, namespace, id)
    found = notes.lines(view, namespace, id, after, PAGE, fence, stream)
    lines = [shaped(LogLine, line, line=line.number) for line in found]
    return Log(lines=lines, is_over=status in TERMINAL or _is_past(fence, status, last))


def _is_past(fence: int | None, status: Status, last: int) -> bool:
    """Whether the wanted attempt is over, though others may follow."""
    return fence is not None and (last > fence or (last == fence and status is not Status.RUNNING))
