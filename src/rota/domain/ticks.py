"""When a cron expression fires in a zone. Instants are seconds since 1970 UTC.

An expression with a wildcard or a step in the hour or the minute follows real time. One that names times of day fires
once for each: a time that a changed clock leaves out comes right after the gap, and one that comes twice counts once.
A schedule may ask for something else. This is cronie's rule with one difference: cronie takes only a field that begins
with `*` for a wildcard. Here every step is one, because `0/20` and `0-59/20` mean a rhythm as much as `*/20` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from enum import StrEnum

import msgspec

from rota.domain.cron import DAY_S, Cron
from rota.domain.zone import LAST_SECOND, Span, Zone

FARTHEST_S = 45 * 366 * 86_400


class Gap(StrEnum):
    """What becomes of a time of day that a changed clock leaves out."""

    NEXT = "next"
    SKIP = "skip"


class Overlap(StrEnum):
    """Which of two equal times of day counts."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Tick(msgspec.Struct, frozen=True, order=True):
    """A nominal instant. `in_gap` is one that stands for a time of day that did not exist."""

    at: int
    in_gap: bool = False


class _Piece(msgspec.Struct, frozen=True):
    """Part of a span: its local times [low, high) count, and its first instant may stand for times left out."""

    offset: int
    low: int
    high: int
    gap_at: int | None


def ticks(cron: Cron, zone: Zone, after: int, overlap: Overlap = Overlap.FIRST) -> Iterator[Tick]:
    """Every tick behind `after`, in order, until none comes for as long as the calendar repeats itself."""
    now = after + 1
    end = min(now + FARTHEST_S, LAST_SECOND)
    while now < end:
        span = zone.span(now)
        piece = _piece(cron, span, now, span.end, overlap)
        if piece.gap_at is not None:
            yield Tick(piece.gap_at, in_gap=True)
        low = piece.low
        while low < piece.high and (found := cron.first(low, piece.high)) is not None:
            yield Tick(found - piece.offset)
            end = min(found - piece.offset + FARTHEST_S, LAST_SECOND)
            low = found + 1
        now = span.end


def last(cron: Cron, zone: Zone, after: int, until: int, overlap: Overlap = Overlap.FIRST) -> Tick | None:
    """The last tick in (after, until]."""
    end = until + 1
    while end > after + 1:
        span = zone.span(end - 1)
        piece = _piece(cron, span, max(span.start, after + 1), end, overlap)
        if piece.low < piece.high and (found := cron.last(piece.low, piece.high)) is not None:
            return Tick(found - piece.offset)
        if piece.gap_at is not None:
            return Tick(piece.gap_at, in_gap=True)
        end = span.start
    return None


def count(cron: Cron, zone: Zone, after: int, until: int, overlap: Overlap = Overlap.FIRST) -> int:
    """How many ticks are in (after, until], without making each of them."""
    total, now = 0, after + 1
    while now <= until:
        span = zone.span(now)
        piece = _piece(cron, span, now, min(span.end, until + 1), overlap)
        total += piece.gap_at is not None
        if piece.low < piece.high:
            total += cron.count(piece.low, piece.high)
        now = span.end
    return total


def gaps(cron: Cron, zone: Zone, after: int, until: int, overlap: Overlap = Overlap.FIRST) -> Iterator[Tick]:
    """The ticks in (after, until] that stand for times which were left out."""
    now = after + 1
    while now <= until:
        span = zone.span(now)
        piece = _piece(cron, span, now, min(span.end, until + 1), overlap)
        if piece.gap_at is not None:
            yield Tick(piece.gap_at, in_gap=True)
        now = span.end


def missing_day(cron: Cron, zone: Zone, at: int) -> date:
    """The local date of the time that was left out and for which the tick `at` stands: it may be the day before."""
    span = zone.span(at)
    local = cron.first(span.start + span.before, span.start + span.offset)
    assert local is not None, "the tick is one of `gaps`"
    return date.fromordinal(date(1970, 1, 1).toordinal() + local // DAY_S)


def repeats(cron: Cron, zone: Zone, after: int, until: int) -> Iterator[int]:
    """The first instants in (after, until] from which on a time of day that fires comes for the second time."""
    now = after + 1
    while now <= until:
        span = zone.span(now)
        is_turned_back = cron.is_fixed and span.end <= until and span.after < span.offset
        if is_turned_back and cron.first(span.end + span.after, span.end + span.offset) is not None:
            yield span.end
        now = span.end


def _piece(cron: Cron, span: Span, start: int, end: int, overlap: Overlap) -> _Piece:
    low, high, gap_at = start + span.offset, end + span.offset, None
    if cron.is_fixed:
        if start == span.start and span.before < span.offset and _is_gap_tick(cron, span):
            gap_at = start
        if overlap is Overlap.FIRST and span.before > span.offset:
            low = max(low, span.start + span.before)
        if overlap is Overlap.SECOND and span.after < span.offset:
            high = min(high, span.end + span.after)
    return _Piece(span.offset, low, high, gap_at)


def _is_gap_tick(cron: Cron, span: Span) -> bool:
    """Whether a time was left out before the span, and the span does not begin with a time that fires anyway."""
    left_out = cron.first(span.start + span.before, span.start + span.offset) is not None
    return left_out and cron.first(span.start + span.offset, span.start + span.offset + 1) is None
