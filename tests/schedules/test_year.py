"""At the end of a virtual year the ledger is compared with what an independent oracle and plain arithmetic say."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from rota.domain.schedule import Overlap, Spec
from rota.domain.tick_policy import TickOutcome
from rota.domain.ticks import Gap
from rota.domain.trigger import Cron
from rota.store.schedule_reader import TickRow
from tests.schedules.timetable import SECOND
from tests.schedules.year import Year, nominal
from tests.support.proving import proof

RAN = {TickOutcome.FIRED, TickOutcome.CAUGHT_UP, TickOutcome.BACKFILLED}
GRACE = 30 * SECOND
SAMPLE_DAYS = 20


def expanded(rows: Sequence[TickRow], ticks: Sequence[int]) -> list[int]:
    """Every tick that the ledger speaks of, as often as it does. A range has so many nominal ticks as it says."""
    found: list[int] = []
    for row in rows:
        inside = ticks[bisect_left(ticks, row.at) : bisect_right(ticks, row.until)]
        assert inside, f"{row} is about no tick"
        assert (inside[0], inside[-1], len(inside)) == (row.at, row.until, row.count), row
        found += inside
    return found


def expect_each_tick_once(year: Year, name: str) -> list[TickRow]:
    spec, rows = year.specs[name], year.table.rows(name)
    ticks = nominal(spec, year.end)
    counted = Counter(expanded(rows, ticks))
    assert [at for at in ticks if not counted[at]] == [], f"{name}: lost"
    assert [at for at, count in counted.items() if count > 1] == [], f"{name}: twice"
    return rows


def expect_rules_were_kept(year: Year, spec: Spec, row: TickRow) -> None:
    """What each outcome means, as far as one row tells."""
    has_run = row.outcome in RAN
    assert (row.execution is not None) == has_run, row
    day = datetime.fromtimestamp(row.at // SECOND, ZoneInfo(spec.tz)).date().isoformat()
    if has_run or row.outcome == TickOutcome.EXCLUDED:
        assert (day in spec.excluded) == (row.outcome == TickOutcome.EXCLUDED), row
    if isinstance(spec.trigger, Cron) and spec.trigger.gap is Gap.SKIP and row.count == 1:
        exists = row.at in set(nominal(spec, year.end, Gap.SKIP))
        assert exists or not has_run, row
        assert not exists or row.outcome != TickOutcome.DST_GAP, row
    late = row.decided_at - row.at
    may_have_waited = spec.overlap in (Overlap.QUEUE_ONE, Overlap.QUEUE_ALL)
    if row.outcome == TickOutcome.FIRED:
        assert late >= 0, row
        assert may_have_waited or late <= GRACE, row
    if row.outcome == TickOutcome.CAUGHT_UP:
        assert late > GRACE, row
        assert may_have_waited or late <= spec.reach_s * SECOND, row


@pytest.mark.timeout(900)
@pytest.mark.parametrize("days", [SAMPLE_DAYS, proof(365)])
def test_every_tick_of_a_year_has_one_outcome_and_one_execution(days: int) -> None:
    year = Year(8, days=days)
    year.run()
    executions: dict[str, int] = {}
    outcomes: Counter[str] = Counter()
    for name, spec in year.specs.items():
        for row in expect_each_tick_once(year, name):
            expect_rules_were_kept(year, spec, row)
            outcomes[row.outcome] += row.count
            if row.execution is not None:
                assert row.execution not in executions, row
                executions[row.execution] = row.at
    assert sorted(executions) == sorted(year.world.executions(limit=10_000_000))
    assert {id: executions[id] for id in year.ticks_told} == year.ticks_told
    if days == SAMPLE_DAYS:
        return
    # Everything that can happen did happen in this year.
    assert set(outcomes) >= set(TickOutcome) - {TickOutcome.UNKNOWN_JOB, TickOutcome.QUEUED}
    assert year.crashes > 20


def test_a_seed_is_reproducible() -> None:
    stories = []
    for _ in range(2):
        year = Year(7, days=6, count=30)
        year.run()
        stories.append([year.table.rows(name) for name in year.specs])
    assert stories[0] == stories[1]
    assert sum(map(len, stories[0])) > 100
