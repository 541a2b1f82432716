"""The ledger of a schedule: the outcome of every tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from rota.domain.status import Status
from rota.store import schedule_reader
from rota.store.port import View
from rota.store.schedule_reader import TickRow
from rota.views.shape import Shape, shaped

PAGE, MOST_ROWS = 10_000, 1_000_000


class Tick(Shape, frozen=True):
    """A tick of a schedule and its outcome, or `count` ticks in a row with one outcome, from `at` to `until`."""

    at: datetime
    """The time of the tick, or of the first one."""
    until: datetime
    """The time of the last tick of the range."""
    count: int
    """How many ticks in a row have this outcome."""
    outcome: str
    """The outcome of the tick, such as `fired`, `overlap` or `missed`."""
    execution_id: str | None
    status: Status | None
    """The status of its execution; null if it has none."""
    reason: str | None
    decided_at: datetime
    """When that was decided."""
    schedule_id: str


class Ledger(Shape, frozen=True):
    """Ticks to show, newest first, and the sums of all ticks of that time, shown or not.

    `started` counts the ticks that have an execution, by its status; it has only the newest rows if `isCapped`.
    """

    items: list[Tick]
    has_more: bool
    outcomes: dict[str, int]
    started: dict[str, int]
    is_capped: bool


def ticks(view: View, namespace: str, app: str, name: str, low: int, high: int, limit: int) -> list[Tick]:
    """Between two instants, newest first."""
    return [of_row(row) for row in schedule_reader.ticks(view, namespace, app, name, low, high, limit)]


def ledger(view: View, namespace: str, app: str, name: str, low: int, high: int, missed: bool, limit: int) -> Ledger:
    """Between two instants; at most `limit` ticks to show, if `missed` only those that started nothing."""
    shown: list[Tick] = []
    rows = shown_rows = 0
    outcomes: Counter[str] = Counter()
    started: Counter[str] = Counter()
    for row in _rows(view, namespace, app, name, low, high):
        rows += 1
        outcomes[row.outcome] += row.count
        if row.execution is not None:
            started[row.status or "without a recorded end"] += row.count
        if missed and (row.execution is not None or row.outcome == "queued"):
            continue
        shown_rows += 1
        if shown_rows <= limit:
            shown.append(of_row(row))
    return Ledger(
        items=shown,
        has_more=shown_rows > limit,
        outcomes=dict(outcomes),
        started=dict(started),
        is_capped=rows >= MOST_ROWS,
    )


def of_row(row: TickRow) -> Tick:
    status = None if row.status is None else Status(row.status)
    return shaped(Tick, row, execution_id=row.execution, status=status, schedule_id=str(row.schedule))


def _rows(view: View, namespace: str, app: str, name: str, low: int, high: int) -> Iterator[TickRow]:
    seen: set[int] = set()
    for _ in range(MOST_ROWS // PAGE):
        page = schedule_reader.ticks(view, namespace, app, name, low, high, PAGE)
        yield from (tick for tick in page if tick.at < high or tick.schedule not in seen)
        if len(page) < PAGE:
            return
        # A schedule that was removed and added again is two, and both may have ticks of the instant between two pages.
        seen = {tick.schedule for tick in page if tick.at == page[-1].at} | (seen if page[-1].at == high else set())
        high = page[-1].at
