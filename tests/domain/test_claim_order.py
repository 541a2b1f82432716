"""How far a claim goes in several lanes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.domain.claim_order import LAST_RANK, SLACK, Head, beyond, near, reach

APART = 2 * SLACK
lanes = st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=8).map(sorted), min_size=1, max_size=6)


def taken(rows: dict[int, list[int]], most: int, depth: int) -> list[int]:
    """The ranks that a claim takes, which reads so many ranks of each lane at first, in the order of its rounds."""
    found: list[int] = []
    while rows and len(found) < most:
        heads = {lane: Head(ranks[:depth], len(ranks) >= depth) for lane, ranks in rows.items()}
        far = reach(heads, most - len(found))
        while far.unread:
            for lane in far.unread:
                more = 4 * len(heads[lane].ranks)
                heads[lane] = Head(rows[lane][:more], len(rows[lane]) >= more)
            far = reach(heads, most - len(found))
        round_: list[int] = []
        for lane in sorted(far.highest, key=lambda lane: rows[lane][0]):
            round_ += [rank for rank in rows[lane] if rank <= far.highest[lane]]
            rows[lane] = [rank for rank in rows[lane] if rank > far.highest[lane]]
        assert round_, "a round brings one row at least"
        found += round_[: most - len(found)]
        rows = {lane: left for lane, left in rows.items() if left}
    return found


@given(lanes, st.integers(1, 20), st.integers(1, 4))
def test_rows_with_distant_ranks_are_taken_in_the_order_of_their_ranks(
    ranks: list[list[int]], most: int, depth: int
) -> None:
    rows = {lane: [rank * APART for rank in one] for lane, one in enumerate(ranks)}
    expected = sorted(rank for one in rows.values() for rank in one)[:most]
    assert sorted(taken(rows, most, depth)) == expected


@given(lanes, st.integers(1, 20), st.integers(1, 4), st.integers(1, SLACK))
def test_no_lane_runs_ahead_of_another_by_more_than_the_slack(
    ranks: list[list[int]], most: int, depth: int, spacing: int
) -> None:
    rows = {lane: [rank * spacing for rank in one] for lane, one in enumerate(ranks)}
    every = sorted(rank for one in rows.values() for rank in one)
    found = taken(rows, most, depth)
    assert len(found) == min(most, len(every))
    left = list(every)
    for rank in found:
        left.remove(rank)
    assert not left or max(found) <= left[0] + SLACK


def test_a_single_lane_is_taken_to_its_end() -> None:
    assert reach({1: Head([5], is_cut=True)}, 100).highest == {1: LAST_RANK}


def test_a_lane_that_may_have_more_before_the_last_row_is_read_further_first() -> None:
    heads = {
        1: Head([0, 3 * APART], is_cut=True),
        2: Head([5 * APART], is_cut=True),
        3: Head([9 * APART], is_cut=False),
    }
    assert reach(heads, 3).unread == [1]


def test_the_rest_of_a_lane_is_behind_the_last_taken_row() -> None:
    assert beyond(Head([1, 2, 3], is_cut=False), 2) == Head([3], is_cut=False)
    assert beyond(Head([1, 2], is_cut=True), 2) == Head([], is_cut=True)
    assert beyond(Head([1, 2], is_cut=False), 2) is None


def test_rows_with_close_ranks_are_taken_as_far_as_they_were_read() -> None:
    heads = {1: Head([0, 3], is_cut=True), 2: Head([5], is_cut=False), 3: Head([6, 7], is_cut=True)}
    assert reach(heads, 4).highest == {1: 3, 2: 6, 3: 6}


def test_a_few_lanes_are_enough_if_all_start_close_together() -> None:
    starts = {lane: (10 * lane, "") for lane in range(9)}
    assert near(starts, 2) == ([0, 1], SLACK)
    assert near(starts, 9) == ([], LAST_RANK)
    assert near({1: (0, ""), 2: (SLACK, ""), 3: (SLACK, "")}, 2)[0] == []


def test_a_single_lane_is_taken_from_without_a_limit() -> None:
    assert near({7: (0, "")}, 10) == ([7], LAST_RANK)
