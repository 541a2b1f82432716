"""What becomes of the ticks that have come since a schedule was last looked at: pure decisions.

A tick that is at most `GRACE_S` late is on time, whoever was away meanwhile. What is older was missed, and the catch-up
policy decides; of many that are missed together only ranges are kept, which are counted, not made one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from enum import StrEnum

import msgspec

from rota.domain import ticks
from rota.domain import trigger as triggers
from rota.domain.instant import MICROSECONDS
from rota.domain.schedule import Busy, CatchUp, Spec
from rota.domain.ticks import Gap, Tick
from rota.domain.trigger import Cron
from rota.domain.zone import day_of, start_of_day

GRACE_S = 30
MOST_HELD = 1000
MOST_LOOKS = 400


class Outcome(StrEnum):
    """What became of a nominal tick; stable codes."""

    FIRED = "fired"
    CAUGHT_UP = "caught_up"
    BACKFILLED = "backfilled"
    QUEUED = "queued"
    OVERLAP = "overlap"
    OUTSIDE_WINDOW = "outside_window"
    MISSED = "missed"
    PAUSED = "paused"
    EXCLUDED = "excluded"
    DST_GAP = "dst_gap"
    UNKNOWN_JOB = "unknown_job"


class Mark(msgspec.Struct, frozen=True):
    """One entry of the ledger: a tick, or a range of `count` ticks that shared their outcome."""

    at: int
    until: int
    count: int
    outcome: Outcome


class Start(msgspec.Struct, frozen=True):
    """An execution to be."""

    at: int
    outcome: Outcome
    cancels_previous: bool = False
    was_held: bool = False


class Round(msgspec.Struct, frozen=True):
    """What to write."""

    marks: list[Mark]
    starts: list[Start]
    held: tuple[int, ...]
    cursor: int
    next_at: int | None
    waits: bool = False
    """Whether to look again when the execution that goes on has ended."""


def decide(
    spec: Spec, cursor: int, held: Sequence[int], now: int, is_busy: bool, holidays: frozenset[date] = frozenset()
) -> Round:
    """Decides every tick in (cursor, now]. `is_busy` tells whether the execution of the last one goes on."""
    low, high = bounds(spec, cursor, now)
    marks: list[Mark] = []
    due: list[tuple[int, Outcome]] = []
    if high > low:
        edge = min(max(low, now - GRACE_S * MICROSECONDS - 1), high)
        recent = list(_wanted(spec, edge, high, holidays, marks))
        due = _missed(spec, low, edge, now, bool(recent), holidays, marks)
        due += [(at, Outcome.FIRED) for at in recent]
    starts, left = _starts(spec, due, tuple(held), is_busy, marks)
    decided = max(cursor, now)
    return Round(marks, starts, left, decided, next_at(spec, decided))


def decide_delay(
    spec: Spec, cursor: int, at: int, now: int, is_busy: bool, holidays: frozenset[date] = frozenset()
) -> Round:
    """The same for a fixed delay, which was over `at`. It is due again when what starts now has ended."""
    decided = max(cursor, now)
    if spec.end is not None and at > spec.end:
        return Round([], [], (), decided, None)
    if is_busy:
        # It was changed or resumed meanwhile, and has begun anew.
        return Round([], [], (), decided, None, waits=True)
    day = today = day_of(spec.tz, now // MICROSECONDS)
    while day in holidays:
        day += timedelta(days=1)
    if day != today:
        following = start_of_day(spec.tz, day) * MICROSECONDS
        return Round([Mark(at, at, 1, Outcome.EXCLUDED)], [], (), decided, following)
    return Round([], [Start(at, Outcome.FIRED)], (), decided, None)


def next_at(spec: Spec, cursor: int) -> int | None:
    """When the schedule is due again if all up to `cursor` is decided."""
    low = cursor if spec.start is None else max(cursor, spec.start - 1)
    found = triggers.first(spec.trigger, low, spec.end)
    return None if found is None else found.at


def outcome_of(start: Start, came_at: int | None) -> Outcome:
    """`came_at` is when one that was held came: what was missed by then is caught up."""
    is_missed = start.was_held and came_at is not None and came_at - start.at > GRACE_S * MICROSECONDS
    return Outcome.CAUGHT_UP if is_missed else start.outcome


def left(spec: Spec, cursor: int, now: int, outcome: Outcome) -> list[Mark]:
    """The ledger of a time in which nothing was started: the schedule was paused, or is no longer the same."""
    low, high = bounds(spec, cursor, now)
    return stretch(spec, low, high, outcome)


def bounds(spec: Spec, low: int, high: int) -> tuple[int, int]:
    """The part of (low, high] that is between the schedule's start and its end."""
    return (
        low if spec.start is None else max(low, spec.start - 1),
        high if spec.end is None else min(high, spec.end),
    )


def is_excluded(spec: Spec, at: int, holidays: frozenset[date]) -> bool:
    return bool(holidays) and day_of(spec.tz, at // MICROSECONDS) in holidays


def _wanted(spec: Spec, low: int, high: int, holidays: frozenset[date], marks: list[Mark]) -> Iterator[int]:
    """Those of the few ticks in (low, high] that may run; the others are marked."""
    tick = triggers.first(spec.trigger, low, high)
    while tick is not None:
        if (reason := reason_against(spec, tick, holidays)) is None:
            yield tick.at
        else:
            marks.append(Mark(tick.at, tick.at, 1, reason))
        tick = triggers.first(spec.trigger, tick.at, high)


def reason_against(spec: Spec, tick: Tick, holidays: frozenset[date]) -> Outcome | None:
    """Why a tick never runs, if that is so."""
    if tick.in_gap and isinstance(spec.trigger, Cron) and spec.trigger.gap is Gap.SKIP:
        return Outcome.DST_GAP
    return Outcome.EXCLUDED if is_excluded(spec, tick.at, holidays) else None


def _missed(
    spec: Spec, low: int, high: int, now: int, has_recent: bool, holidays: frozenset[date], marks: list[Mark]
) -> list[tuple[int, Outcome]]:
    """What is caught up of the ticks in (low, high]; all others are marked, by the range."""
    if high <= low or triggers.count(spec.trigger, low, high) == 0:
        return []
    reach = max(low, now - round(spec.reach_s * MICROSECONDS) - 1)
    if spec.catch_up is CatchUp.NONE:
        reach = low
    chosen = _latest(spec, reach, high, _most(spec, has_recent), holidays)
    edges = sorted({low, *chosen, high, min(reach, high)})
    for start, end in itertools.pairwise(edges):
        outcome = Outcome.OUTSIDE_WINDOW if end <= reach else Outcome.MISSED
        # A chosen tick ends its piece, but does not belong to it.
        marks += _split(spec, start, end - 1 if end in chosen else end, outcome, holidays)
    return [(at, Outcome.CAUGHT_UP) for at in chosen]


def _most(spec: Spec, has_recent: bool) -> int:
    match spec.catch_up:
        case CatchUp.NONE:
            return 0
        case CatchUp.LAST:
            return 0 if has_recent else 1
        case CatchUp.ALL:
            return spec.catch_up_most


def _latest(spec: Spec, low: int, high: int, most: int, holidays: frozenset[date]) -> list[int]:
    found: list[int] = []
    for _ in range(most + MOST_LOOKS if most else 0):
        tick = triggers.last(spec.trigger, low, high)
        if tick is None or len(found) == most:
            break
        reason = reason_against(spec, tick, holidays)
        if reason is None:
            found.append(tick.at)
        # A day that is left out has no tick to look at, however many it would have had.
        high = _day_before(spec, tick.at) if reason is Outcome.EXCLUDED else tick.at - 1
    return found[::-1]


def _day_before(spec: Spec, at: int) -> int:
    """The last instant before the local day of `at`."""
    begin = start_of_day(spec.tz, day_of(spec.tz, at // MICROSECONDS)) * MICROSECONDS
    return min(begin, at) - 1


def _split(spec: Spec, low: int, high: int, outcome: Outcome, holidays: frozenset[date]) -> list[Mark]:
    """Ranges in (low, high], with excluded days apart."""
    marks: list[Mark] = []
    for day in _between(spec, low, high, holidays):
        begin = start_of_day(spec.tz, day) * MICROSECONDS - 1
        end = start_of_day(spec.tz, day + timedelta(days=1)) * MICROSECONDS - 1
        marks += _around_gaps(spec, low, min(high, max(low, begin)), outcome)
        marks += stretch(spec, max(low, begin), min(high, end), Outcome.EXCLUDED)
        low = max(low, end)
    return marks + _around_gaps(spec, low, high, outcome)


def _around_gaps(spec: Spec, low: int, high: int, outcome: Outcome) -> list[Mark]:
    """Ranges in (low, high], with times apart that did not exist, if the schedule leaves them out."""
    marks: list[Mark] = []
    if isinstance(spec.trigger, Cron) and spec.trigger.gap is Gap.SKIP:
        span = (low // MICROSECONDS, high // MICROSECONDS)
        for tick in ticks.gaps(*triggers.parts(spec.trigger), *span, spec.trigger.repeat):
            at = tick.at * MICROSECONDS
            marks += [*stretch(spec, low, at - 1, outcome), Mark(at, at, 1, Outcome.DST_GAP)]
            low = at
    return marks + stretch(spec, low, high, outcome)


def _between(spec: Spec, low: int, high: int, holidays: frozenset[date]) -> list[date]:
    if not holidays or high <= low:
        return []
    first, last = (day_of(spec.tz, instant // MICROSECONDS) for instant in (low, high))
    return sorted(day for day in holidays if first <= day <= last)


def stretch(spec: Spec, low: int, high: int, outcome: Outcome) -> list[Mark]:
    """All ticks in (low, high] as one entry of the ledger; nothing if there are none."""
    number = triggers.count(spec.trigger, low, high)
    if not number:
        return []
    first, last = triggers.first(spec.trigger, low, high), triggers.last(spec.trigger, low, high)
    assert first is not None
    assert last is not None
    return [Mark(first.at, last.at, number, outcome)]


def _starts(
    spec: Spec, due: Sequence[tuple[int, Outcome]], held: tuple[int, ...], is_busy: bool, marks: list[Mark]
) -> tuple[list[Start], tuple[int, ...]]:
    """Which of those that are due start now, and which are held until the one before has ended."""
    starts: list[Start] = []
    if held and not is_busy:
        starts.append(Start(held[0], Outcome.FIRED, was_held=True))
        held, is_busy = held[1:], True
    for at, outcome in due:
        if not is_busy or spec.overlap is Busy.ALLOW:
            starts.append(Start(at, outcome))
        elif spec.overlap is Busy.CANCEL_PREVIOUS:
            starts.append(Start(at, outcome, cancels_previous=True))
        elif len(held) < _room(spec):
            held = (*held, at)
            marks.append(Mark(at, at, 1, Outcome.QUEUED))
            continue
        else:
            marks.append(Mark(at, at, 1, Outcome.OVERLAP))
            continue
        is_busy = True
    return starts, held


def _room(spec: Spec) -> int:
    match spec.overlap:
        case Busy.QUEUE_ONE:
            return 1
        case Busy.QUEUE_ALL:
            return MOST_HELD
        case _:
            return 0
