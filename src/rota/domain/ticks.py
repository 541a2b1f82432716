"""When a cron expression fires in a zone. Instants are seconds since 1970 UTC.

An expression with a wildcard or a step in the hour or the minute follows real time. An expression that names times of
day fires once for each: a time that a clock change leaves out fires right after the gap, and a time that comes twice
fires once. A schedule may ask for something else. This is cronie's rule with one difference: cronie takes only a field
that begins with `*` for a wildcard. Here every step is one, because `0/20` and `0-59/20` mean a rhythm as much as
`*/20` does.
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
    """The policy for a time of day that a clock change leaves out."""

    NEXT = "next"
    SKIP = "skip"


class Repeat(StrEnum):
    """Which of two equal times of day counts."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Tick(msgspec.Struct, frozen=True, order=True):
    """A nominal instant. `in_gap` is one that stands for a time of day that did not exist."""

    at: int
    in_gap: bool = False


class _Piece(msgspec.Struct, frozen=True):
    """A part of a span with one offset: the local times [low, high). `gap_at`: skipped times fire at this instant."""

    start: int
    offset: int
    low: int
    high: int
    gap_at: int | None


def ticks(cron: Cron, zone: Zone, after: int, repeat: Repeat = Repeat.FIRST) -> Iterator[Tick]:
    """Every tick behind `after`, in order, until none comes for as long as the calendar repeats itself."""
    latest = after
    for piece in _pieces(cron, zone, after, LAST_SECOND, repeat):
        if piece.start > latest + FARTHEST_S:
            return
        if piece.gap_at is not None:
            yield Tick(piece.gap_at, in_gap=True)
        low = piece.low
        while (found := cron.first(low, piece.high)) is not None:
            latest = found - piece.offset
            yield Tick(latest)
            low = found + 1


def last(cron: Cron, zone: Zone, after: int, until: int, repeat: Repeat = Repeat.FIRST) -> Tick | None:
    """The last tick in (after, until]."""
    for piece in reversed(list(_pieces(cron, zone, after, until, repeat))):
        if (found := cron.last(piece.low, piece.high)) is not None:
            return Tick(found - piece.offset)
        if piece.gap_at is not None:
            return Tick(piece.gap_at, in_gap=True)
    return None


def count(cron: Cron, zone: Zone, after: int, until: int, repeat: Repeat = Repeat.FIRST) -> int:
    """How many ticks are in (after, until], without making each of them."""
    pieces = _pieces(cron, zone, after, until, repeat)
    return sum((piece.gap_at is not None) + cron.count(piece.low, piece.high) for piece in pieces)


def gaps(cron: Cron, zone: Zone, after: int, until: int, repeat: Repeat = Repeat.FIRST) -> Iterator[Tick]:
    """The ticks in (after, until] that stand for times which were left out."""
    pieces = _pieces(cron, zone, after, until, repeat)
    return (Tick(piece.gap_at, in_gap=True) for piece in pieces if piece.gap_at is not None)


def missing_day(cron: Cron, zone: Zone, at: int) -> date:
    """The local date of the time that was left out and for which the tick `at` stands: it may be the day before."""
    span = zone.span(at)
    local = cron.first(span.start + span.before, span.start + span.offset)
    assert local is not None, "the tick is one of `gaps`"
    return date.fromordinal(date(1970, 1, 1).toordinal() + local // DAY_S)


def repeats(cron: Cron, zone: Zone, after: int, until: int) -> Iterator[int]:
    """The first instants in (after, until] from which on a time of day that fires comes for the second time."""
    for span in _spans(zone, after, until) if cron.is_fixed else ():
        is_turned_back = span.end <= until and span.after < span.offset
        if is_turned_back and cron.first(span.end + span.after, span.end + span.offset) is not None:
            yield span.end


def _spans(zone: Zone, after: int, until: int) -> Iterator[Span]:
    now = after + 1
    while now <= until:
        span = zone.span(now)
        yield span
        now = span.end


def _pieces(cron: Cron, zone: Zone, after: int, until: int, repeat: Repeat) -> Iterator[_Piece]:
    """The spans in (after, until], cut where a local time comes twice and only one of the two counts."""
    for span in _spans(zone, after, until):
        start = max(span.start, after + 1)
        low, high = start + span.offset, min(span.end, until + 1) + span.offset
        gap_at = None
        if cron.is_fixed:
            if start == span.start and span.before < span.offset and _is_gap_tick(cron, span):
                gap_at = start
            if repeat is Repeat.FIRST and span.before > span.offset:
                low = max(low, span.start + span.before)
            if repeat is Repeat.SECOND and span.after < span.offset:
                high = min(high, span.end + span.after)
        yield _Piece(start, span.offset, low, max(low, high), gap_at)


def _is_gap_tick(cron: Cron, span: Span) -> bool:
    """Whether a time was left out before the span, and the span does not begin with a time that fires anyway."""
    left_out = cron.first(span.start + span.before, span.start + span.offset) is not None
    return left_out and cron.first(span.start + span.offset, span.start + span.offset + 1) is None
