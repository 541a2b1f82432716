"""Histograms, percentiles, folding and windows."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain import statistics
from rota.domain.instant import MICROSECONDS
from rota.domain.statistics import BUCKETS, FIVE_MINUTES_S, HOUR_S, MINUTE_S, BadWindow, Count, Delta, Labels, Window

NOW = 1_800_000_000 * MICROSECONDS
DAY = 86_400 * MICROSECONDS
LAST = statistics.bounds(BUCKETS - 1)[0]
times = st.integers(min_value=0, max_value=LAST - 1)


@given(st.integers(min_value=-(10**15), max_value=10**18))
def test_every_time_has_one_bucket_with_bounds_around_it(time: int) -> None:
    number = statistics.bucket(time)
    assert 0 <= number < BUCKETS
    low, high = statistics.bounds(number)
    assert low <= max(0, time)
    assert number == BUCKETS - 1 or max(0, time) < high


def test_buckets_leave_no_gap() -> None:
    for number in range(BUCKETS - 1):
        assert statistics.bounds(number)[1] == statistics.bounds(number + 1)[0]
        assert statistics.bucket(statistics.bounds(number)[1]) == number + 1
    assert LAST > 19 * 3600 * MICROSECONDS


@given(st.lists(times, min_size=1, max_size=200), st.sampled_from([0.0, 0.5, 0.95, 0.99, 1.0]))
def test_a_percentile_is_in_the_bucket_of_the_exact_one(values: list[int], share: float) -> None:
    found = statistics.percentile(statistics.histogram(values), share)
    assert found is not None
    ordered = sorted(values)
    exact = ordered[max(0, -(-round(share * len(values) * 10**6) // 10**6) - 1)]
    low, high = statistics.bounds(statistics.bucket(exact))
    assert low <= found * MICROSECONDS <= high + 0.001


@given(st.lists(times, min_size=1))
def test_percentiles_grow_with_their_share(values: list[int]) -> None:
    histogram = statistics.histogram(values)
    found = [statistics.percentile(histogram, share) or 0.0 for share in (0.5, 0.95, 0.99)]
    assert found == sorted(found)


def test_there_is_no_percentile_of_nothing_and_the_last_bucket_has_no_end() -> None:
    assert statistics.percentile({}, 0.5) is None
    assert statistics.percentile(statistics.histogram([LAST * 50]), 0.99) == LAST / MICROSECONDS


deltas = st.lists(
    st.builds(
        lambda at, lane, count, outcome, values: Delta(
            0, NOW + at, lane, count, outcome, msgspec.json.encode(values).decode()
        ),
        st.integers(min_value=0, max_value=3 * HOUR_S * MICROSECONDS),
        st.integers(min_value=1, max_value=3),
        st.integers(min_value=1, max_value=400),
        st.sampled_from(Count),
        st.lists(times, max_size=5),
    ),
    max_size=20,
)


@given(deltas, st.integers())
def test_folding_loses_nothing_and_needs_no_order(found: list[Delta], seed: int) -> None:
    shuffled = random.Random(seed).sample(found, len(found))
    one, other = statistics.fold(found), statistics.fold(shuffled)
    assert {key: (tally.counts, tally.times) for key, tally in one.items()} == {
        key: (tally.counts, tally.times) for key, tally in other.items()
    }
    for step_s in statistics.STEPS_S:
        rows = [tally for (_, row_s, _), tally in one.items() if row_s == step_s]
        assert sum(sum(tally.counts) for tally in rows) == sum(delta.count for delta in found)
        values = [time for delta in found for time in msgspec.json.decode(delta.run_times or "[]")]
        merged = statistics.Tally()
        for tally in rows:
            merged.add_times(0, tally.times[0])
        assert merged.times[0] == statistics.histogram(values)


@given(st.dictionaries(st.integers(min_value=0, max_value=31), st.integers(min_value=1)))
def test_a_histogram_is_read_as_it_was_written(found: dict[int, int]) -> None:
    assert statistics.read(statistics.written(found)) == found


@given(st.lists(st.dictionaries(st.integers(min_value=0, max_value=31), st.integers(min_value=1)), min_size=1))
def test_histograms_are_read_as_their_sum(several: list[dict[int, int]]) -> None:
    expected = statistics.Tally()
    for found in several:
        expected.add_times(0, found)
    assert statistics.read_sum(",".join(map(statistics.written, several))) == expected.times[0]


def test_a_window_has_whole_steps() -> None:
    found = statistics.window(NOW - HOUR_S * MICROSECONDS + 5, NOW + 1, 120, NOW)
    assert found.start % found.step == found.stop % found.step == 0
    assert (found.start <= NOW - HOUR_S * MICROSECONDS, found.stop > NOW) == (True, True)
    rows = [Window(0, 10 * DAY, step_s).row_s for step_s in (120, 300, 1200, 3600, 7200)]
    assert rows == [MINUTE_S, FIVE_MINUTES_S, FIVE_MINUTES_S, HOUR_S, HOUR_S]


@given(st.integers(min_value=1, max_value=399 * DAY))
def test_without_a_step_there_are_few_points(length: int) -> None:
    found = statistics.window(NOW - length, NOW, None, NOW)
    assert 1 <= found.points <= 300
    assert found.row_s == HOUR_S or length <= 2 * DAY


@pytest.mark.parametrize(
    ("start", "stop", "step_s", "parameter"),
    [
        (NOW, NOW, 60, "to"),
        (NOW, NOW - 1, None, "to"),
        (NOW - 60 * MICROSECONDS, NOW, 59, "step"),
        (NOW - 60 * MICROSECONDS, NOW, 0, "step"),
        (NOW - 60 * MICROSECONDS, NOW, 90, "step"),
        (NOW - 3 * DAY, NOW, 600, "step"),
        (NOW - 399 * DAY, NOW, HOUR_S, "step"),
        (NOW - 2 * DAY, NOW, 60, "step"),
    ],
)
def test_windows_that_are_refused(start: int, stop: int, step_s: int | None, parameter: str) -> None:
    with pytest.raises(BadWindow) as refused:
        statistics.window(start, stop, step_s, NOW)
    assert refused.value.parameter == parameter


def test_the_largest_groups_have_a_series_of_their_own() -> None:
    totals: dict[Labels, int] = {(f"job{number}",): number for number in range(10)}
    assert statistics.chosen(totals, 10) == sorted(totals)
    assert statistics.chosen(totals, 3) == [("job8",), ("job9",)]
    assert statistics.chosen(totals, 1) == []
