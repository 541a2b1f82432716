"""When a queue is full, and how long to wait then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.domain.backpressure import LONGEST_S, SHORTEST_S, admits, retry_after_s

counts = st.integers(min_value=0, max_value=10**9)


@given(counts, counts, counts)
def test_a_queue_never_admits_past_its_limit(depth: int, arriving: int, most: int) -> None:
    assert admits(depth, arriving, most) == (depth + arriving <= most)


@given(counts, counts)
def test_a_queue_without_a_limit_admits_everything(depth: int, arriving: int) -> None:
    assert admits(depth, arriving, None)


@given(st.floats(min_value=-1e9, max_value=1e9), st.floats(min_value=-1e9, max_value=1e9))
def test_the_wait_is_bounded_and_grows_with_the_age_of_the_queue(one: float, other: float) -> None:
    assert SHORTEST_S <= retry_after_s(one) <= LONGEST_S
    assert (retry_after_s(min(one, other))) <= retry_after_s(max(one, other))
