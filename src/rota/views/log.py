"""The lines that an execution has written."""

from __future__ import annotations

from datetime import datetime

from rota.domain.status import TERMINAL, Status
from rota.store import notes
from rota.store.port import View
from rota.views.shape import Shape, shaped

PAGE = 1000
Position = tuple[int, int]
"""Attempt and number of a line."""


class LogLine(Shape, frozen=True):
    """`line` counts from 1 within the attempt. The stream is stdout, stderr, log, or rota for Rota's own remarks."""

    attempt: int
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


def log(view: View, namespace: str, id: str, after: Position, attempt: int | None, stream: str | None) -> Log:
    """Up to `PAGE` lines behind `after`."""
    status, fence = notes.progress(view, namespace, id)
    found = notes.lines(view, namespace, id, after, PAGE, attempt, stream)
    lines = [shaped(LogLine, line, attempt=line.fence, line=line.number) for line in found]
    return Log(lines=lines, is_over=status in TERMINAL or _is_past(attempt, status, fence))


def _is_past(attempt: int | None, status: Status, fence: int) -> bool:
    """Whether the wanted attempt is over, though others may follow."""
    return attempt is not None and (fence > attempt or (fence == attempt and status is not Status.RUNNING))
