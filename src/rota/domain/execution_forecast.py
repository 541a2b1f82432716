"""When a queued execution starts and a running one ends, from how long its job usually takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import msgspec


class Expected(msgspec.Struct, frozen=True):
    """Instants; None if they cannot be known."""

    starts_at: int | None = None
    ends_at: int | None = None


def usual(took: Sequence[int]) -> int | None:
    """The median, in microseconds; None without any."""
    return round(median(took)) if took else None


def in_line(now: int, ahead: int, slots: int, took: int | None) -> Expected:
    """For an execution with `ahead` others before it, if each of the `slots` runs one execution after the other."""
    if took is None or not slots:
        return Expected()
    starts_at = now + ahead * took // slots
    return Expected(starts_at, starts_at + took)


def running(now: int, started_at: int, took: int | None, share: float | None) -> Expected:
    """The end follows from the share that is done, if it is 1 % or more; else from the usual duration, if not over."""
    if share is not None and share >= 0.01:
        return Expected(started_at, started_at + round((now - started_at) / share))
    if took is None or started_at + took <= now:
        return Expected(started_at)
    return Expected(started_at, started_at + took)


class Step(msgspec.Struct, frozen=True):
    """A step of a run: its upstreams, when it started and ended, and how long it usually takes."""

    upstream: frozenset[int]
    started_at: int | None = None
    ended_at: int | None = None
    is_left_out: bool = False
    took: int | None = None


def steps(now: int, known: Sequence[Step]) -> Mapping[int, Expected]:
    """Start and end of each step that has not ended; unknown if those of an upstream step are."""
    found: dict[int, Expected] = {}

    def ends_at(number: int) -> int | None:
        step = known[number]
        if step.is_left_out:
            return 0
        return step.ended_at if step.ended_at is not None else expected(number).ends_at

    def expected(number: int) -> Expected:
        if number not in found:
            found[number] = _of_step(now, known[number], [ends_at(one) for one in sorted(known[number].upstream)])
        return found[number]

    return {n: expected(n) for n, step in enumerate(known) if step.ended_at is None and not step.is_left_out}


def _of_step(now: int, step: Step, before: Sequence[int | None]) -> Expected:
    if step.started_at is not None:
        return Expected(step.started_at, None if step.took is None else max(now, step.started_at + step.took))
    if any(one is None for one in before):
        return Expected()
    starts_at = max([now, *(one for one in before if one is not None)])
    return Expected(starts_at, None if step.took is None else starts_at + step.took)
