"""What is odd about a set of schedules: herds, times that do not exist, runs that take longer than their interval."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from rota.domain import duration, ticks
from rota.domain import trigger as triggers
from rota.domain.instant import MICROSECONDS
from rota.domain.schedule import Busy, Spec
from rota.domain.ticks import Gap, Tick
from rota.domain.trigger import Cron, Trigger

HERD = 10
DAY = 86_400 * MICROSECONDS
WEEK = 7 * DAY
MOST_A_WEEK = 7 * 24
MOST_LOOKS = 50
YEAR = 366 * DAY


_CONSEQUENCES = {
    Busy.SKIP: "ticks are left out",
    Busy.QUEUE_ONE: "ticks wait, and some are left out",
    Busy.QUEUE_ALL: "ever more ticks wait",
    Busy.CANCEL_PREVIOUS: "no run ever ends",
    Busy.ALLOW: "ever more run at once",
}


class Finding(msgspec.Struct, frozen=True):
    """One remark, and the schedules that it is about."""

    kind: str
    schedules: list[str]
    message: str


def lint(specs: Mapping[str, Spec], now: int, run_times_s: Mapping[str, float]) -> list[Finding]:
    """`run_times_s` is how long the jobs took lately, by the name of the schedule."""
    findings = list(_herds(specs, now))
    for name, spec in specs.items():
        findings += _left_out(name, spec, now)
        findings += _too_long(name, spec, now, run_times_s.get(name))
    return findings


def _herds(specs: Mapping[str, Spec], now: int) -> Iterable[Finding]:
    """Schedules that fire a few times a day, by the instants of the next week; with jitter they are spread.

    Of herds that are made of the same schedules only the next one is told.
    """
    together: dict[int, list[str]] = defaultdict(list)
    for name, spec in specs.items():
        if spec.jitter_s or triggers.count(spec.trigger, now, now + WEEK) > MOST_A_WEEK:
            continue
        at = now
        while (tick := triggers.first(spec.trigger, at, now + WEEK)) is not None:
            together[tick.at].append(name)
            at = tick.at
    told: set[tuple[str, ...]] = set()
    for at, names in sorted(together.items()):
        herd = tuple(sorted(names))
        if len(herd) >= HERD and herd not in told:
            told.add(herd)
            when = f"{datetime.fromtimestamp(at // MICROSECONDS, UTC):%H:%M} UTC"
            advice = "spread them with H in place of a number, or with jitter"
            yield Finding("herd", list(herd), f"{len(herd)} schedules at {when}: {advice}")


def gaps(trigger: Trigger, after: int, until: int) -> list[Tick]:
    """Ticks in (after, until] that stand for a time of day which a changed clock leaves out."""
    if not isinstance(trigger, Cron):
        return []
    low, high = after // MICROSECONDS, until // MICROSECONDS
    found = ticks.gaps(*triggers.parts(trigger), low, high, trigger.repeat)
    return [Tick(tick.at * MICROSECONDS, in_gap=True) for tick in found]


def _left_out(name: str, spec: Spec, now: int) -> Sequence[Finding]:
    found = gaps(spec.trigger, now, now + YEAR)
    if not found:
        return []
    assert isinstance(spec.trigger, Cron)
    day = ticks.missing_day(*triggers.parts(spec.trigger), found[0].at // MICROSECONDS).isoformat()
    what = "is left out" if spec.trigger.gap is Gap.SKIP else "comes right after the gap"
    text = f"{spec.trigger.expression} in {spec.trigger.tz}: its time does not exist on {day}, so that tick {what}"
    return [Finding("dst_gap", [name], text)]


def _too_long(name: str, spec: Spec, now: int, took_s: float | None) -> Sequence[Finding]:
    interval_s = None if took_s is None else _shortest_s(spec.trigger, now)
    if took_s is None or interval_s is None or took_s <= interval_s:
        return []
    text = (
        f"takes {duration.words(took_s)} and may be due after {duration.words(interval_s)}: "
        f"with overlap={spec.overlap} {_CONSEQUENCES[spec.overlap]}"
    )
    return [Finding("too_long", [name], text)]


def _shortest_s(trigger: Trigger, now: int) -> float | None:
    """Between any two of the next ticks."""
    times: list[int] = []
    while len(times) < MOST_LOOKS and (tick := triggers.first(trigger, times[-1] if times else now)) is not None:
        times.append(tick.at)
    return min(((after - before) / MICROSECONDS for before, after in itertools.pairwise(times)), default=None)
