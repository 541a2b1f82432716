"""What became of every tick of a schedule, as the command line reads and shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from rota.cli import output, params, text
from rota.cli.database import Database

if TYPE_CHECKING:
    from rota.store.timetable import ScheduleRow, TickRow

MICROSECONDS = 1_000_000
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
OVERDUE_S = 10
PAGE, MOST_ROWS = 10_000, 1_000_000
STARTED = frozenset({"fired", "caught_up", "backfilled"})


class Ledger:
    """Rows to show, and what all rows come to."""

    def __init__(self) -> None:
        self.shown: list[TickRow] = []
        self.has_more = False
        self.rows = 0
        self.outcomes: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()

    @property
    def started(self) -> int:
        return self.statuses.total()

    def add(self, tick: TickRow) -> None:
        self.rows += 1
        self.outcomes[tick.outcome] += tick.count
        if tick.execution is not None:
            self.statuses[tick.status or "without a recorded end"] += tick.count

    def words(self) -> list[str]:
        """The sums, for people."""
        if not self.rows:
            return []
        idle = Counter({name: number for name, number in self.outcomes.items() if name not in STARTED})
        total = text.count(self.outcomes.total(), "tick")
        words = f"{total}: {self.started:,} started{_counted(self.statuses)}, {idle.total():,} did not{_counted(idle)}"
        cut = f"only the newest {MOST_ROWS:,} rows were read: choose a shorter time"
        return [words, cut] if self.rows >= MOST_ROWS else [words]


def read(database: Database, app: str, name: str, low: int, high: int, missed: bool, limit: int) -> Ledger:
    """Everything between two instants; to show are at most `limit` rows, if `missed` only of what started nothing."""
    found = Ledger()
    for tick in rows(database, app, name, low, high):
        found.add(tick)
        if missed and (tick.execution is not None or tick.outcome == "queued"):
            continue
        if len(found.shown) < limit:
            found.shown.append(tick)
        else:
            found.has_more = True
    return found


def rows(database: Database, app: str, name: str, low: int, high: int) -> Iterator[TickRow]:
    from rota.store import timetable

    seen: set[int] = set()
    for _ in range(MOST_ROWS // PAGE):
        page = database.read(timetable.ticks, database.namespace, app, name, low, high, PAGE)
        yield from (tick for tick in page if tick.at < high or tick.schedule not in seen)
        if len(page) < PAGE:
            return
        # Schedules of one name, removed and made again, may have ticks of one instant on both pages.
        seen = {tick.schedule for tick in page if tick.at == page[-1].at} | (seen if page[-1].at == high else set())
        high = page[-1].at


def _counted(numbers: Counter[str]) -> str:
    listed = ", ".join(f"{number:,} {name}" for name, number in numbers.most_common())
    return f" ({listed})" if listed else ""


COLUMNS: output.Columns[TickRow] = {
    "tick": lambda tick: moment(tick.at),
    "ticks": lambda tick: "1" if tick.count == 1 else f"{tick.count:,} until {moment(tick.until)}",
    "outcome": lambda tick: tick.outcome,
    "status": lambda tick: tick.status or ("" if tick.execution is None else "-"),
    "id": lambda tick: tick.execution or "",  # Under this heading a narrow terminal does not cut it.
}


def data(tick: TickRow) -> dict[str, Any]:
    return {**output.data(tick), "at": text.iso(tick.at), "until": text.iso(tick.until)}


def moment(at: int) -> str:
    """An instant, without a fraction if it has none. A narrow terminal breaks it at the space and does not cut it."""
    return (text.iso(at) or "").replace(".000000Z", "Z").replace("T", " ")


def between(start: datetime | None, end: datetime | None, now: int) -> tuple[int, int]:
    """Two times of the command line as instants; the first of all and now, if they are not given."""
    for option, value in (("--from", start), ("--to", end)):
        if value is not None and not EARLIEST <= value < LATEST:
            raise click.UsageError(f"{option}: must be between the years 1970 and 8999, not {value.year}")
    low, high = params.instant(start) or 0, params.instant(end) or now
    if high < low:
        raise click.UsageError("--to: comes before --from" if end else "--from: is not in the past")
    return low, high


def is_overdue(row: ScheduleRow, now: int) -> bool:
    return row.next_at is not None and row.next_at < now - OVERDUE_S * MICROSECONDS


def not_decided(row: ScheduleRow, start: datetime | None, high: int, now: int) -> list[str]:
    """What the ledger cannot know: ticks that nobody has looked at, and the time before the schedule."""
    from rota.domain import trigger

    words = []
    low, end = max(row.cursor, (row.spec.start or 0) - 1), now if row.spec.end is None else min(now, row.spec.end)
    number = trigger.count(row.spec.trigger, low, min(high, end))
    since = moment(row.cursor // MICROSECONDS * MICROSECONDS)
    if number and row.paused_at is not None:
        words.append(f"paused since {since}, which leaves out {text.count(number, 'tick')} so far")
    elif number and is_overdue(row, now):
        words.append(f"{text.count(number, 'tick')} since {since} not looked at yet: is a worker running?")
    if start is not None and (params.instant(start) or 0) < row.created_at:
        made = moment(row.created_at // MICROSECONDS * MICROSECONDS)
        words.append(f"schedule {row.name} was made at {made}: before that it has no ticks but backfilled ones")
    return words
