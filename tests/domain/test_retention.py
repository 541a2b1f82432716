"""When history is pruned."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain import retention
from rota.domain.instant import MICROSECONDS
from rota.domain.retention import DAY, DAY_S, FOREVER, Pass, Record, Retention

NOW = 1_800_000_000 * MICROSECONDS
HOUR = 3600 * MICROSECONDS


def kept(default_days: int = 30, **namespaces: int | None) -> Retention:
    own = {name: None if days is None else days * DAY_S for name, days in namespaces.items()}
    return Retention(default_days * DAY_S, {"default": None, **own})


def test_a_namespace_has_its_own_retention_or_the_default() -> None:
    policy = kept(30, a=7, b=None, c=FOREVER)
    assert [policy.of(name) // DAY_S for name in ("default", "a", "b", "c")] == [30, 7, 30, FOREVER]
    assert dict(policy.cutoffs(NOW)) == {"default": NOW - 30 * DAY, "a": NOW - 7 * DAY, "b": NOW - 30 * DAY}


@pytest.mark.parametrize(
    ("policy", "shortest", "longest", "hasty"),
    [
        (kept(30), 30, 30, []),
        (kept(30, a=7), 7, 30, ["a"]),
        (kept(30, a=90), 30, 90, ["default"]),
        (kept(FOREVER), None, None, []),
        (kept(FOREVER, a=7), 7, None, ["a"]),
        (kept(30, a=FOREVER), 30, None, ["default"]),
    ],
)
def test_the_shortest_and_the_longest_retention_and_namespaces_below_the_longest(
    policy: Retention, shortest: int | None, longest: int | None, hasty: list[str]
) -> None:
    assert policy.shortest_s == (None if shortest is None else shortest * DAY_S)
    assert policy.longest_s == (None if longest is None else longest * DAY_S)
    assert [name for name, _ in policy.hasty_cutoffs(NOW)] == hasty


def test_a_day_can_be_read_from_its_partition_name() -> None:
    day = retention.day_of(NOW)
    assert retention.day_named(retention.day_name(day)) == day
    assert retention.day_named("default") is None
    assert retention.day_named("20261399") is None


def test_the_wanted_days_cover_every_accepted_id() -> None:
    days = retention.days_wanted(NOW)
    assert days[0] <= NOW - retention.MOST_ID_SKEW
    assert days[-1] == retention.day_of(NOW) + 7 * DAY
    assert all(later - earlier == DAY for earlier, later in itertools.pairwise(days))


@given(st.integers(1, 60), st.integers(-70, 10))
def test_a_day_is_dropped_only_when_all_its_executions_are_old_enough(days: int, offset: int) -> None:
    day = retention.day_of(NOW) + offset * DAY
    policy = kept(days)
    if retention.days_to_drop([day], policy, NOW):
        assert day + DAY <= NOW - days * DAY
        assert retention.is_closed(day, NOW)


def test_the_oldest_days_are_dropped_first_and_none_if_history_is_kept_for_ever() -> None:
    days = [retention.day_of(NOW) - offset * DAY for offset in (31, 33, 32, 40, 2)]
    assert retention.days_to_drop(days, kept(30), NOW) == sorted(days[1:4])
    assert retention.days_to_drop(days, kept(30, a=FOREVER), NOW) == []
    assert retention.days_to_drop(days, kept(30, a=35), NOW) == [days[3]]


def test_a_pass_is_due_every_hour_and_full_every_day() -> None:
    assert retention.next_pass(Record(), NOW) == Pass(NOW, NOW, "", 0)
    done = Record(begun_at=NOW - HOUR, beat_at=NOW, done_at=NOW, full_at=NOW - HOUR, removed=5, mark="m")
    assert retention.next_pass(done, NOW + HOUR // 2) is None
    assert retention.next_pass(done, NOW + HOUR) == Pass(NOW + HOUR, NOW - HOUR, "m", 0)
    assert retention.next_pass(done, NOW + 23 * HOUR) == Pass(NOW + 23 * HOUR, NOW + 23 * HOUR, "", 0)


def test_a_running_pass_is_left_alone_and_an_abandoned_one_is_taken_over() -> None:
    busy = Record(begun_at=NOW, beat_at=NOW + HOUR, done_at=NOW - HOUR, full_at=NOW, removed=5, mark="m")
    assert retention.next_pass(busy, NOW + HOUR + MICROSECONDS) is None
    assert retention.next_pass(busy, NOW + 2 * HOUR) == Pass(NOW + 2 * HOUR, NOW, "m", 5)


def test_a_clock_that_went_back_does_not_stop_the_pruning() -> None:
    done = Record(begun_at=NOW - HOUR, beat_at=NOW, done_at=NOW, full_at=NOW)
    assert retention.next_pass(done, NOW - 300 * HOUR) is not None


def test_the_size_of_a_batch_follows_its_duration() -> None:
    assert retention.next_batch(200, 0.001) == 400
    assert retention.next_batch(1000, 0.001) == 1000
    assert retention.next_batch(200, 0.015) == 200
    assert retention.next_batch(200, 0.1) == 100
    assert retention.next_batch(1, 10.0) == 1
