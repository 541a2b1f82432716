"""The outcome of every tick that came since a schedule was last decided: fired, caught up, queued or left out.

A tick that is at most `GRACE_S` late is on time. An older tick was missed, and the catch-up policy decides about it.
Missed ticks are kept as ranges, which are counted and not made one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from enum import StrEnum

import msgspec

from rota.domain import trigger as triggers
from rota.domain.instant import MICROSECONDS
from rota.domain.schedule import CatchUp, Overlap, Spec
from rota.domain.ticks import Gap, Tick
from rota.domain.trigger import Cron
from rota.domain.zone import day_of, start_of_day

GRACE_S = 30
MOST_HELD = 1000
MOST_LOOKS = 400


class TickOutcome(StrEnum):
    """The outcome of a nominal tick; stable codes."""

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


class LedgerEntry(msgspec.Struct, frozen=True):
    """One entry of the ledger: a tick, or a range of `count` ticks that shared their outcome."""

    at: int
    until: int
    count: int
    outcome: TickOutcome


class Start(msgspec.Struct, frozen=True):
    """An execution to create."""

    at: int
    outcome: TickOutcome
    cancels_previous: bool = False
    was_held: bool = False


class Round(msgspec.Struct, frozen=True):
    """The decisions about one schedule, to be written in one transaction."""

    entries: list[LedgerEntry]
    starts: list[Start]
    held: tuple[int, ...]
    cursor: int
    next_at: int | None
    waits: bool = False
    """Whether the schedule is decided again when the running execution ends."""


def decide(
    spec: Spec, cursor: int, held: Sequence[int], now: int, is_busy: bool, holidays: frozenset[date] = frozenset()
) -> Round:
    """Decides every tick in (cursor, now]. `is_busy`: the execution of the tick before has not ended."""
    low, high = bounds(spec, cursor, now)
    entries: list[LedgerEntry] = []
    due: list[tuple[int, TickOutcome]] = []
    if high > low:
        edge = min(max(low, now - GRACE_S * MICROSECONDS - 1), high)
        recent = list(_wanted(spec, edge, high, holidays, entries))
        due = _missed(spec, low, edge, now, bool(recent), holidays, entries)
        due += [(at, TickOutcome.FIRED) for at in recent]
    starts, left = _starts(spec, due, tuple(held), is_busy, entries)
    decided = max(cursor, now)
    return Round(entries, starts, left, decided, next_at(spec, decided))


def decide_delay(
    spec: Spec, cursor: int, at: int, now: int, is_busy: bool, holidays: frozenset[date] = frozenset()
) -> Round:
    """The same for a fixed delay that was over `at`. The next delay begins when the execution that starts now ends."""
    decided = max(cursor, now)
    if spec.end is not None and at > spec.end:
        return Round([], [], (), decided, None)
    if is_busy:
        # The schedule was changed or resumed while an execution was running.
        return Round([], [], (), decided, None, waits=True)
    day = today = day_of(spec.tz, now)
    while day in holidays:
        day += timedelta(days=1)
    if day != today:
        return Round([LedgerEntry(at, at, 1, TickOutcome.EXCLUDED)], [], (), decided, start_of_day(spec.tz, day))
    return Round([], [Start(at, TickOutcome.FIRED)], (), decided, None)


def next_at(spec: Spec, cursor: int) -> int | None:
    """When the schedule is due again after all ticks up to `cursor` are decided."""
    found = triggers.first(spec.trigger, bounds(spec, cursor, cursor)[0], spec.end)
    return None if found is None else found.at


def upcoming(spec: Spec, after: int, most: int, holidays: frozenset[date] = frozenset()) -> list[int]:
    """The next ticks behind `after` that may run, at most `most`. A fixed delay has none of its own."""
    found: list[int] = []
    for _ in range(most + MOST_LOOKS):
        at = next_at(spec, after)
        if at is None or len(found) == most:
            break
        tick = triggers.first(spec.trigger, at - 1)
        if tick is not None and reason_against(spec, tick, holidays) is None:
            found.append(at)
        after = at
    return found


def outcome_of(start: Start, came_at: int | None) -> TickOutcome:
    """`came_at` is when a held tick was first decided: if it was already missed then, it is caught up."""
    is_missed = start.was_held and came_at is not None and came_at - start.at > GRACE_S * MICROSECONDS
    return TickOutcome.CAUGHT_UP if is_missed else start.outcome


def bounds(spec: Spec, low: int, high: int) -> tuple[int, int]:
    """The part of (low, high] that is between the schedule's start and its end."""
    return (
        low if spec.start is None else max(low, spec.start - 1),
        high if spec.end is None else min(high, spec.end),
    )


def _wanted(spec: Spec, low: int, high: int, holidays: frozenset[date], entries: list[LedgerEntry]) -> Iterator[int]:
    """The ticks in (low, high] that may run; the others are marked."""
    while (tick := triggers.first(spec.trigger, low, high)) is not None:
        if (reason := reason_against(spec, tick, holidays)) is None:
            yield tick.at
        else:
            entries.append(LedgerEntry(tick.at, tick.at, 1, reason))
        low = tick.at


def reason_against(spec: Spec, tick: Tick, holidays: frozenset[date]) -> TickOutcome | None:
    """Why a tick never runs; None if it may."""
    if tick.in_gap and isinstance(spec.trigger, Cron) and spec.trigger.gap is Gap.SKIP:
        return TickOutcome.DST_GAP
    is_excluded = holidays and day_of(spec.tz, tick.at) in holidays
    return TickOutcome.EXCLUDED if is_excluded else None


def _missed(
    spec: Spec, low: int, high: int, now: int, has_recent: bool, holidays: frozenset[date], entries: list[LedgerEntry]
) -> list[tuple[int, TickOutcome]]:
    """The ticks in (low, high] that are caught up; all others are marked, by the range."""
    if triggers.count(spec.trigger, low, high) == 0:
        return []
    is_none = spec.catch_up is CatchUp.NONE
    reach = low if is_none else max(low, now - round(spec.reach_s * MICROSECONDS) - 1)
    most = {CatchUp.NONE: 0, CatchUp.LAST: 0 if has_recent else 1, CatchUp.ALL: spec.catch_up_most}
    chosen = _latest(spec, reach, high, most[spec.catch_up], holidays)
    edges, caught_up = {reach, *_edges_around(chosen), *_edges(spec, low, high, holidays)}, set(chosen)
    for start, end in itertools.pairwise(sorted({low, high, *(edge for edge in edges if low < edge < high)})):
        tick = triggers.first(spec.trigger, start, end)
        if tick is not None and tick.at not in caught_up:
            missed = TickOutcome.OUTSIDE_WINDOW if end <= reach else TickOutcome.MISSED
            entries += stretch(spec, start, end, reason_against(spec, tick, holidays) or missed)
    return [(at, TickOutcome.CAUGHT_UP) for at in chosen]


def _edges(spec: Spec, low: int, high: int, holidays: frozenset[date]) -> Iterator[int]:
    """Where ranges in (low, high] are cut, so that one reason holds for all ticks of a range."""
    if isinstance(spec.trigger, Cron) and spec.trigger.gap is Gap.SKIP:
        yield from _edges_around([tick.at for tick in triggers.gaps(spec.trigger, low, high)])
    first, last = day_of(spec.tz, low), day_of(spec.tz, high)
    for day in holidays:
        if first <= day <= last:
            yield start_of_day(spec.tz, day) - 1
            yield start_of_day(spec.tz, day + timedelta(days=1)) - 1


def _edges_around(instants: Sequence[int]) -> list[int]:
    """Edges that put each instant into a range of its own."""
    return [edge for at in instants for edge in (at - 1, at)]


def _latest(spec: Spec, low: int, high: int, most: int, holidays: frozenset[date]) -> list[int]:
    found: list[int] = []
    for _ in range(most + MOST_LOOKS if most else 0):
        tick = triggers.last(spec.trigger, low, high)
        if tick is None or len(found) == most:
            break
        reason = reason_against(spec, tick, holidays)
        if reason is None:
            found.append(tick.at)
        high = tick.at - 1
        if reason is TickOutcome.EXCLUDED:  # The whole day is excluded: continue with the day before.
            high = min(high, start_of_day(spec.tz, day_of(spec.tz, tick.at)) - 1)
    return found[::-1]


def stretch(spec: Spec, low: int, high: int, outcome: TickOutcome) -> list[LedgerEntry]:
    """All ticks in (low, high] as one entry of the ledger; nothing if there are none."""
    first, last = triggers.first(spec.trigger, low, high), triggers.last(spec.trigger, low, high)
    if first is None or last is None:
        return []
    return [LedgerEntry(first.at, last.at, triggers.count(spec.trigger, low, high), outcome)]


def _starts(
    spec: Spec, due: Sequence[tuple[int, TickOutcome]], held: tuple[int, ...], is_busy: bool, entries: list[LedgerEntry]
) -> tuple[list[Start], tuple[int, ...]]:
    """Which of the due ticks start now, and which are held until the execution before them has ended."""
    starts: list[Start] = []
    room = {Overlap.QUEUE_ONE: 1, Overlap.QUEUE_ALL: MOST_HELD}.get(spec.overlap, 0)
    if held and not is_busy:
        starts.append(Start(held[0], TickOutcome.FIRED, was_held=True))
        held, is_busy = held[1:], True
    for at, outcome in due:
        if not is_busy or spec.overlap is Overlap.ALLOW:
            starts.append(Start(at, outcome))
        elif spec.overlap is Overlap.CANCEL_PREVIOUS:
            starts.append(Start(at, outcome, cancels_previous=True))
        elif len(held) < room:
            held = (*held, at)
            entries.append(LedgerEntry(at, at, 1, TickOutcome.QUEUED))
            continue
        else:
            entries.append(LedgerEntry(at, at, 1, TickOutcome.OVERLAP))
            continue
        is_busy = True
    return starts, held
