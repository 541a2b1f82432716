"""Findings of `rota schedules lint`: herds, times that do not exist, runs that take longer than their interval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice, pairwise

import msgspec

from rota.domain import duration, ticks
from rota.domain import trigger as triggers
from rota.domain.instant import MICROSECONDS
from rota.domain.schedule import Overlap, Spec
from rota.domain.ticks import Gap, Tick
from rota.domain.trigger import Cron, Trigger

HERD = 10
DAY = 86_400 * MICROSECONDS
WEEK = 7 * DAY
MOST_A_WEEK = 7 * 24
MOST_LOOKS = 50
YEAR = 366 * DAY
SPREAD = "spread them with H in place of a number, or with jitter"


_CONSEQUENCES = {
    Overlap.SKIP: "ticks are left out",
    Overlap.QUEUE_ONE: "ticks wait, and some are left out",
    Overlap.QUEUE_ALL: "ever more ticks wait",
    Overlap.CANCEL_PREVIOUS: "no run ever ends",
    Overlap.ALLOW: "ever more run at once",
}


class LintFinding(msgspec.Struct, frozen=True):
    """One finding, and the schedules that it is about."""

    kind: str
    schedules: list[str]
    """The schedules that it is about, as app.name."""
    message: str
    """What was found, and what helps."""


def lint(specs: Mapping[str, Spec], now: int, run_times_s: Mapping[str, float]) -> list[LintFinding]:
    """`run_times_s` is how long the jobs took lately, by the name of the schedule."""
    findings = list(_herds(specs, now))
    for name, spec in specs.items():
        findings += _left_out(name, spec, now)
        findings += _too_long(name, spec, now, run_times_s.get(name, 0.0))
    return findings


def may_be_of_herd(spec: Spec, now: int) -> bool:
    """Whether it fires a few times a day, without jitter."""
    return not spec.jitter_s and triggers.count(spec.trigger, now, now + WEEK) <= MOST_A_WEEK


def _herds(specs: Mapping[str, Spec], now: int) -> Iterator[LintFinding]:
    """Schedules without jitter that fire a few times a day, grouped by the instants of the next week.

    Of several herds of the same schedules only the next one is reported.
    """
    together: dict[int, list[str]] = defaultdict(list)
    for name, spec in specs.items():
        if may_be_of_herd(spec, now):
            for tick in _following(spec.trigger, now, now + WEEK):
                together[tick.at].append(name)
    reported: set[tuple[str, ...]] = set()
    for at, names in sorted(together.items()):
        herd = tuple(sorted(names))
        if len(herd) >= HERD and herd not in reported:
            reported.add(herd)
            when = f"{datetime.fromtimestamp(at // MICROSECONDS, UTC):%H:%M} UTC"
            yield LintFinding("herd", list(herd), f"{len(herd)} schedules at {when}: {SPREAD}")


def _left_out(name: str, spec: Spec, now: int) -> Iterator[LintFinding]:
    trigger = spec.trigger
    if isinstance(trigger, Cron) and (found := triggers.gaps(trigger, now, now + YEAR)):
        day = ticks.missing_day(*triggers.parts(trigger), found[0].at // MICROSECONDS).isoformat()
        what = "is left out" if trigger.gap is Gap.SKIP else "comes right after the gap"
        text = f"{trigger.expression} in {trigger.tz}: its time does not exist on {day}, so that tick {what}"
        yield LintFinding("dst_gap", [name], text)


def _too_long(name: str, spec: Spec, now: int, took_s: float) -> Iterator[LintFinding]:
    """Compares with the shortest interval between any two of the next ticks."""
    times = [tick.at for tick in islice(_following(spec.trigger, now), MOST_LOOKS)]
    interval_s = min(((after - before) / MICROSECONDS for before, after in pairwise(times)), default=took_s)
    if took_s > interval_s:
        text = (
            f"takes {duration.words(took_s)} and may be due after {duration.words(interval_s)}: "
            f"with overlap={spec.overlap} {_CONSEQUENCES[spec.overlap]}"
        )
        yield LintFinding("too_long", [name], text)


def _following(trigger: Trigger, after: int, until: int | None = None) -> Iterator[Tick]:
    while (tick := triggers.first(trigger, after, until)) is not None:
        yield tick
        after = tick.at
