"""One number orders a queue: fifo by time, priority with ageing, and nothing starves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rota.domain.errors import DefinitionError
from rota.domain.rank import HEAD_START, HIGHEST, LEVELS, LOWEST, Policy, level, rank
from tests.domain.strategies import instants

priorities = st.integers(min_value=LOWEST, max_value=HIGHEST)
entries = st.tuples(instants, priorities)


@given(instants, instants, priorities, priorities)
def test_fifo_orders_by_time_only(first: int, second: int, one: int, other: int) -> None:
    assert (rank(Policy.FIFO, first, one) < rank(Policy.FIFO, second, other)) == (first < second)


@given(instants, instants, priorities)
def test_of_two_equal_priorities_the_older_comes_first(first: int, second: int, priority: int) -> None:
    assume(first < second)
    for policy in Policy:
        assert rank(policy, first, priority) < rank(policy, second, priority)


@given(instants, priorities, priorities)
def test_of_two_executions_due_together_the_higher_priority_comes_first(due_at: int, one: int, other: int) -> None:
    assume(one > other)
    assert rank(Policy.PRIORITY, due_at, one) < rank(Policy.PRIORITY, due_at, other)


@given(instants, priorities, priorities, st.integers(min_value=1, max_value=10**12))
def test_an_old_low_priority_overtakes_a_new_high_priority_after_the_head_start(
    due_at: int, low: int, high: int, longer: int
) -> None:
    assume(low < high)
    head_start = (high - low) * HEAD_START
    old = rank(Policy.PRIORITY, due_at, low)
    assert old < rank(Policy.PRIORITY, due_at + head_start + longer, high)
    assert old > rank(Policy.PRIORITY, due_at + head_start - longer, high)


@given(st.sampled_from(list(Policy)), st.lists(entries, max_size=20))
def test_ranks_order_every_queue_totally(policy: Policy, queue: list[tuple[int, int]]) -> None:
    ranks = [rank(policy, due_at, priority) for due_at, priority in queue]
    assert all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in ranks)
    order = sorted(range(len(queue)), key=lambda index: (ranks[index], index))
    assert [ranks[index] for index in order] == sorted(ranks)


def test_priorities_have_names() -> None:
    assert level("high") > level("normal") == 0 > level("low")
    assert [level(name) for name in LEVELS] == list(LEVELS.values())


@given(priorities)
def test_a_priority_may_be_a_number(priority: int) -> None:
    assert level(priority) == priority


@pytest.mark.parametrize("value", ["urgent", "", "HIGH", LOWEST - 1, HIGHEST + 1, True, 1.5, None, [1]])
def test_other_priorities_are_refused(value: Any) -> None:
    with pytest.raises(DefinitionError, match="priority"):
        level(value)
