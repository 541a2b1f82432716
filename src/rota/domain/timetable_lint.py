"""What is odd about a set of schedules: herds, times that do not exist, runs that take longer than their interval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from rota.domain import duration, ticks
from rota.domain import trigger as triggers
from rota.domain.schedule import Spec
from rota.domain.ticks import Gap, Tick
from rota.domain.trigger import Cron, Trigger

MICROSECONDS = 1_000_000
HERD = 10
DAY = 86_400 * MICROSECONDS
MOST_A_DAY = 24
YEAR = 366 * DAY


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
    """Schedules that fire a few times a day, by the instants of the next day; with jitter they are spread."""
    together: dict[int, list[str]] = defaultdict(list)
    for name, spec in specs.items():
        if spec.jitter_s or triggers.count(spec.trigger, now, now + DAY) > MOST_A_DAY:
            continue
        at = now
        while (tick := triggers.first(spec.trigger, at, now + DAY)) is not None:
            together[tick.at].append(name)
            at = tick.at
    for at, names in sorted(together.items()):
        if len(names) >= HERD:
            when = f"{datetime.fromtimestamp(at // MICROSECONDS, UTC):%H:%M} UTC"
            advice = "spread them with H in place of a number, or with jitter"
            yield Finding("herd", sorted(names), f"{len(names)} schedules at {when}: {advice}")


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
    day = f"{datetime.fromtimestamp(found[0].at // MICROSECONDS, UTC):%Y-%m-%d}"
    what = "is left out" if spec.trigger.gap is Gap.SKIP else "comes right after the gap"
    text = f"{spec.trigger.expression} in {spec.trigger.tz}: its time does not exist on {day}, so that tick {what}"
    return [Finding("dst_gap", [name], text)]


def _too_long(name: str, spec: Spec, now: int, took_s: float | None) -> Sequence[Finding]:
    first = triggers.first(spec.trigger, now)
    second = None if first is None else triggers.first(spec.trigger, first.at)
    if took_s is None or first is None or second is None:
        return []
    interval_s = (second.at - first.at) / MICROSECONDS
    if took_s <= interval_s:
        return []
    text = f"takes {duration.words(took_s)} and is due every {duration.words(interval_s)}: ticks will be {spec.overlap}"
    return [Finding("too_long", [name], text)]
