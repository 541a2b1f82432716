"""Counts and times of executions: how they are added up, and how percentiles are estimated from them.

A transaction that creates or ends executions appends a `Delta` for each lane and outcome. Folding adds deltas to a
`Tally` for each lane, minute, five minutes and hour. All of it is addition, so the result does not depend on the order,
and a read that adds the deltas that are not folded yet gets the same numbers as a read after the fold.

Times are kept as a histogram of 125 buckets: four of 16 microseconds, then four for each doubling of the time, and a
last one for 19 hours and more. A bucket is at most a quarter as wide as its lowest time, so a percentile is right
within 25 %.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from rota.domain.instant import MICROSECONDS

BUCKETS = 125
FINEST = 16
"""The width of the first buckets, in microseconds."""
MINUTE_S, FIVE_MINUTES_S, HOUR_S = 60, 300, 3600
STEPS_S = (MINUTE_S, FIVE_MINUTES_S, HOUR_S)
"""The rows of five minutes are for charts of a day, which would read five times as many rows of minutes."""
MINUTES_KEPT_S = 48 * HOUR_S
HOURS_KEPT_S = 400 * 24 * HOUR_S
MOST_POINTS = 2000
MOST_SERIES = 50

Histogram = dict[int, int]
"""How many times fell into each bucket; buckets without any are left out."""
Key = tuple[int, int, int]
"""A lane, the seconds of a row (one of `STEPS_S`), and when the row begins."""


class Count(StrEnum):
    """The counts of executions: created, ended by status, retried."""

    CREATED = "created"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    RETRIES = "retries"


class Time(StrEnum):
    """The times that are measured for an execution that has ended, in the order of the columns."""

    RUN_TIME = "runTime"
    START_LATENCY = "startLatency"
    LATENESS = "lateness"


class Metric(StrEnum):
    """The metrics that can be read: counts, percentiles of times in seconds, and values sampled once a minute."""

    CREATED = "created"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    RETRIES = "retries"
    RUN_TIME_P50 = "runTime.p50"
    RUN_TIME_P95 = "runTime.p95"
    RUN_TIME_P99 = "runTime.p99"
    START_LATENCY_P50 = "startLatency.p50"
    START_LATENCY_P95 = "startLatency.p95"
    START_LATENCY_P99 = "startLatency.p99"
    LATENESS_P50 = "lateness.p50"
    LATENESS_P95 = "lateness.p95"
    LATENESS_P99 = "lateness.p99"
    QUEUED = "queued"
    OLDEST_AGE = "oldestAge"
    BUSY = "busy"
    SLOTS = "slots"


class Label(StrEnum):
    """The labels by which executions can be grouped."""

    JOB = "job"
    QUEUE = "queue"
    APP = "app"
    POOL = "pool"


Labels = tuple[str, ...]
"""The values of the labels of a series, in the order in which they were asked for."""


class Gauge(StrEnum):
    """The values that are sampled once a minute."""

    QUEUED = "queued"
    OLDEST_AGE = "oldestAge"
    BUSY = "busy"
    SLOTS = "slots"


PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
COUNTS, TIMES = tuple(Count), tuple(Time)


class Delta(msgspec.Struct, frozen=True, array_like=True):
    """The executions that a transaction created or ended in a lane. Times are histograms, or lists of microseconds."""

    id: int
    at: int
    lane: int
    count: int
    outcome: str
    run_times: str | None = None
    start_latencies: str | None = None
    latenesses: str | None = None


class Tally:
    """Counts in the order of `COUNTS` and histograms in the order of `TIMES`."""

    def __init__(self) -> None:
        self.counts = [0] * len(COUNTS)
        self.times: list[Histogram] = [{} for _ in TIMES]

    def add(self, outcome: str, count: int) -> None:
        """`outcome` is one of `COUNTS`."""
        self.counts[COUNTS.index(outcome)] += count

    def count(self, outcome: Count) -> int:
        return self.counts[COUNTS.index(outcome)]

    def add_times(self, number: int, found: Mapping[int, int]) -> None:
        into = self.times[number]
        for one, count in found.items():
            into[one] = into.get(one, 0) + count

    def add_all(self, other: Tally) -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        for number, found in enumerate(other.times):
            self.add_times(number, found)


def bucket(microseconds: int) -> int:
    """Which bucket a time falls into. A negative time, after a step of the clock, counts as none."""
    units = max(0, microseconds) // FINEST
    doublings = max(0, units.bit_length() - 3)
    return min(BUCKETS - 1, 4 * doublings + (units >> doublings))


def bounds(number: int) -> tuple[int, int]:
    """The lowest time of this bucket, and of the next one. The last bucket has no end, but gets such a bound too."""
    doublings = max(0, number // 4 - 1)
    low = number - 4 * doublings
    return FINEST * (low << doublings), FINEST * (low + 1 << doublings)


def histogram(times: Sequence[int]) -> Histogram:
    ordered = sorted(times)
    found: Histogram = {}
    first = 0
    while first < len(ordered):
        number = bucket(ordered[first])
        is_last = number == BUCKETS - 1
        following = len(ordered) if is_last else bisect_left(ordered, bounds(number)[1], first)
        found[number] = following - first
        first = following
    return found


def percentile(found: Mapping[int, int], share: float) -> float | None:
    """An estimate in seconds: the times of a bucket are taken as evenly spread over it. None if there are no times."""
    total = sum(found.values())
    if not total:
        return None
    rank, below = share * total, 0
    for number in sorted(found):
        if below + found[number] >= rank:
            break
        below += found[number]
    low, high = bounds(number)
    if number == BUCKETS - 1:
        high = low  # It may be any time above.
    return (low + (high - low) * max(0.0, rank - below) / found[number]) / MICROSECONDS


def begin_of(at: int, step_s: int) -> int:
    """When the row begins that has this instant."""
    return at - at % (step_s * MICROSECONDS)


_times = msgspec.json.Decoder(Histogram | list[int]).decode
_histogram = msgspec.json.Decoder(Histogram).decode
_histograms = msgspec.json.Decoder(list[Histogram]).decode
_encode = msgspec.json.Encoder().encode


def times_of(column: str) -> Histogram:
    """The histogram of a column of a delta."""
    found = _times(column)
    return histogram(found) if isinstance(found, list) else found


def fold(deltas: Iterable[Delta]) -> dict[Key, Tally]:
    """The sums that deltas add to each row."""
    minutes: dict[Key, Tally] = {}
    for delta in deltas:
        tally = _of(minutes, delta.lane, MINUTE_S, delta.at)
        tally.add(delta.outcome, delta.count)
        for number, column in enumerate((delta.run_times, delta.start_latencies, delta.latenesses)):
            if column is not None:
                tally.add_times(number, times_of(column))
    tallies = dict(minutes)
    for (lane, _, at), tally in minutes.items():
        for step_s in (FIVE_MINUTES_S, HOUR_S):
            _of(tallies, lane, step_s, at).add_all(tally)
    return tallies


def _of(tallies: dict[Key, Tally], lane: int, step_s: int, at: int) -> Tally:
    """The tally of the row that has this instant."""
    key = (lane, step_s, begin_of(at, step_s))
    found = tallies.get(key)
    if found is None:
        found = tallies[key] = Tally()
    return found


def written(found: Histogram) -> str:
    return _encode(found).decode()


def read(text: str) -> Histogram:
    return _histogram(text)


def read_sum(texts: str) -> Histogram:
    """The sum of histograms that are separated by commas."""
    sums = [0] * BUCKETS
    for found in _histograms(f"[{texts}]"):
        for number, count in found.items():
            sums[number] += count
    return {number: count for number, count in enumerate(sums) if count}


class Window(msgspec.Struct, frozen=True):
    """Points from `start` to before `stop`, each `step_s` long, made from rows of `row_s`."""

    start: int
    stop: int
    step_s: int

    @property
    def row_s(self) -> int:
        return max(row_s for row_s in STEPS_S if self.step_s % row_s == 0)

    @property
    def step(self) -> int:
        return self.step_s * MICROSECONDS

    @property
    def points(self) -> int:
        return (self.stop - self.start) // self.step

    def point(self, at: int) -> int:
        return (at - self.start) // self.step


class BadWindow(ValueError):
    """A window that cannot be read. `parameter` is the one to change."""

    def __init__(self, parameter: str, detail: str) -> None:
        super().__init__(detail)
        self.parameter = parameter


def window(start: int, stop: int, step_s: int | None, now: int) -> Window:
    """The window that covers these instants with whole steps. Without a step, the finest that gives few points."""
    if stop <= start:
        raise BadWindow("to", "to must be later than from")
    is_old = start < now - MINUTES_KEPT_S * MICROSECONDS
    step_s = step_s if step_s is not None else _usual_step_s(stop - start, is_old)
    if step_s < MINUTE_S or step_s % MINUTE_S:
        raise BadWindow("step", "step must be a whole number of minutes")
    if is_old and step_s % HOUR_S:
        raise BadWindow(
            "step", "minutes are kept for 48 hours: with an earlier from, step must be a whole number of hours"
        )
    step = step_s * MICROSECONDS
    found = Window(begin_of(start, step_s), -(-stop // step) * step, step_s)
    if found.points > MOST_POINTS:
        raise BadWindow("step", f"at most {MOST_POINTS} points are given, not {found.points}: choose a longer step")
    return found


def _usual_step_s(length: int, is_old: bool) -> int:
    wanted = -(-length // (MOST_POINTS // 8 * MICROSECONDS))
    least_s = HOUR_S if is_old else MINUTE_S if wanted <= FIVE_MINUTES_S else FIVE_MINUTES_S
    return max(least_s, -(-wanted // least_s) * least_s)


def chosen(totals: Mapping[Labels, int], most: int) -> list[Labels]:
    """The labels that get a series of their own: the largest. If not all do, one place is left for the others."""
    ranked = sorted(totals, key=lambda labels: (-totals[labels], labels))
    return sorted(ranked if len(ranked) <= most else ranked[: most - 1])


def series_per_metric(metrics: Sequence[str]) -> int:
    return max(1, MOST_SERIES // len(metrics))
