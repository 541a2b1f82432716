"""Triggers: the first tick, the last one and their number are three ways to say the same."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime

import pytest

from rota.domain import trigger
from rota.domain.ticks import Gap, Repeat, Tick
from rota.domain.trigger import After, At, Cron, Every, Trigger
from tests.cron.oracle import Oracle, utc
from tests.cron.windows import EXPRESSIONS, changes, invented

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Antarctica/Troll", "Africa/Cairo")
SEEDS = [f"shop.job{number}" for number in range(600)]


def one_by_one(some: Trigger, after: int, until: int) -> list[Tick]:
    """Every tick in (after, until], each found from the one before."""
    found: list[Tick] = []
    while (tick := trigger.first(some, found[-1].at if found else after, until)) is not None:
        assert tick.at > (found[-1].at if found else after)
        found.append(tick)
    return found


def agree(some: Trigger, after: int, until: int) -> list[Tick]:
    """The ticks in (after, until], after the three were found to say the same of it."""
    found = one_by_one(some, after, until)
    assert trigger.count(some, after, until) == len(found)
    assert trigger.last(some, after, until) == (found[-1] if found else None)
    return found


def at_edges(some: Trigger, found: list[Tick], entropy: random.Random) -> None:
    """A range begins behind its start and ends with its end, to the microsecond."""
    if not found:
        return
    low, high = sorted(entropy.choices(range(len(found)), k=2))
    start, end = found[low].at, found[high].at
    assert agree(some, start - 1, end) == found[low : high + 1]
    assert agree(some, start, end) == found[low + 1 : high + 1]
    assert agree(some, start - 1, end - 1) == found[low:high]
    assert agree(some, start, start) == []


@pytest.mark.parametrize("seed", range(60))
def test_cron_around_a_change_of_the_clock(seed: int) -> None:
    entropy = random.Random(seed)
    name = entropy.choice(ZONES)
    change = entropy.choice(changes(name)).at * SECOND
    expression = entropy.choice([entropy.choice(EXPRESSIONS), invented(entropy)])
    some = Cron(expression, name, entropy.choice(list(Gap)), entropy.choice(list(Repeat)))
    after, until = change - entropy.randrange(5 * HOUR), change + entropy.randrange(5 * HOUR)
    found = agree(some, after, until)
    at_edges(some, found, entropy)
    middle = entropy.randint(after, until)
    assert agree(some, after, middle) + agree(some, middle, until) == found


@pytest.mark.parametrize("seed", range(20))
def test_cron_agrees_with_the_oracle_between_microseconds(seed: int) -> None:
    entropy = random.Random(seed)
    name, expression = entropy.choice(ZONES), entropy.choice(EXPRESSIONS)
    after = entropy.randrange(utc(2001) * SECOND, utc(2038) * SECOND)
    until = after + entropy.randrange(8 * HOUR)
    wanted = Oracle(expression).instants(name, after // SECOND + 1, until // SECOND + 1)
    assert [tick.at for tick in agree(Cron(expression, name), after, until)] == [at * SECOND for at in wanted]


@pytest.mark.parametrize("seed", range(20))
def test_rare_cron_over_years(seed: int) -> None:
    entropy = random.Random(seed)
    expression = entropy.choice(
        ["30 2 29 2 *", "0 0 31 * *", "30 2 * 3,10 0L", "0 2 LW * *", "0 0 1 1 *", "30 2 13 * 5#2"]
    )
    some = Cron(expression, entropy.choice(ZONES), repeat=entropy.choice(list(Repeat)))
    after = entropy.randrange(utc(2000) * SECOND, utc(2030) * SECOND)
    found = agree(some, after, after + entropy.randrange(8 * 366 * DAY))
    at_edges(some, found, entropy)


@pytest.mark.parametrize("seed", range(40))
def test_every(seed: int) -> None:
    entropy = random.Random(seed)
    period = entropy.choice([SECOND, 90 * SECOND, HOUR, DAY, entropy.randrange(SECOND, DAY)])
    some = Every(period, entropy.choice([0, entropy.randrange(period)]))
    trigger.check(some)
    after = entropy.randrange(utc(1969) * SECOND, utc(2100) * SECOND)
    until = after + entropy.randrange(30 * period)
    found = agree(some, after, until)
    near = range((after - some.phase) // period - 1, (until - some.phase) // period + 2)
    wanted = [some.phase + number * period for number in near]
    assert [tick.at for tick in found] == [at for at in wanted if after < at <= until]
    at_edges(some, found, entropy)


def test_every_is_counted_from_1970_and_shifted_by_the_phase() -> None:
    noon = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()) * SECOND
    assert trigger.first(Every(300 * SECOND), noon) == Tick(noon + 300 * SECOND)
    assert trigger.first(Every(300 * SECOND), noon - 1) == Tick(noon)
    assert trigger.first(Every(300 * SECOND, 30 * SECOND), noon) == Tick(noon + 30 * SECOND)
    assert trigger.last(Every(300 * SECOND, 30 * SECOND), 0, noon) == Tick(noon - 270 * SECOND)
    assert trigger.count(Every(300 * SECOND, 30 * SECOND), noon, noon + HOUR) == 12
    assert trigger.first(Every(300 * SECOND, 30 * SECOND), -300 * SECOND) == Tick(-270 * SECOND)


@pytest.mark.parametrize("seed", range(40))
def test_at(seed: int) -> None:
    entropy = random.Random(seed)
    instants = [entropy.randrange(1000) for _ in range(entropy.randint(1, 60))]
    some = At((*instants, instants[0]))
    after, until = sorted(entropy.randrange(-10, 1010) for _ in range(2))
    found = agree(some, after, until)
    assert [tick.at for tick in found] == sorted({at for at in instants if after < at <= until})
    at_edges(some, found, entropy)


def test_a_fixed_delay_has_no_ticks_of_its_own() -> None:
    assert agree(After(SECOND), 0, DAY) == []


@pytest.mark.parametrize("some", [Cron("* * * * *"), Every(SECOND), At((5 * SECOND,)), After(SECOND)])
def test_a_range_that_ends_before_it_starts_is_empty(some: Trigger) -> None:
    assert agree(some, DAY, 0) == []
    assert agree(some, DAY, DAY) == []


def test_many_ticks_are_counted_without_listing_them() -> None:
    start, end = utc(2000) * SECOND, utc(2030) * SECOND
    assert trigger.count(Cron("* * * * * *"), start, end) == (end - start) // SECOND
    assert trigger.count(Cron("* * * * *", "Europe/Berlin"), start, end) == (end - start) // (60 * SECOND)
    assert trigger.count(Cron("30 2 * * *", "Europe/Berlin"), start, end) == (end - start) // DAY
    assert (
        trigger.count(Cron("30 2 * * *", "Europe/Berlin", repeat=Repeat.BOTH), start, end) == (end - start) // DAY + 30
    )


def test_a_tick_after_a_gap_is_marked() -> None:
    some, spring = Cron("30 2 * * *", "Europe/Berlin"), utc(2025, 3, 30) * SECOND
    right_after = Tick(spring + HOUR, in_gap=True)
    assert agree(some, spring, spring + 2 * HOUR) == [right_after]
    assert agree(some, spring + HOUR, spring + 2 * HOUR) == []


def minutes(some: Cron) -> list[int]:
    return list(trigger.parts(some)[0].minute.numbers)


def test_h_is_the_same_in_every_release() -> None:
    assert [minutes(Cron("H * * * *", seed=seed)) for seed in ("shop.report", "shop.clean_up")] == [[17], [37]]
    assert minutes(Cron("H * * * *", seed="shop.report")) == minutes(
        Cron("H H * * *", "Asia/Tokyo", seed="shop.report")
    )


def test_h_spreads_jobs() -> None:
    of_minute = Counter(minutes(Cron("H * * * *", seed=seed))[0] for seed in SEEDS)
    assert len(of_minute) == 60
    assert max(of_minute.values()) <= 3 * len(SEEDS) // 60
    hours = {trigger.parts(Cron("H H * * *", seed=seed))[0].hour.numbers for seed in SEEDS}
    assert len(hours) == 24


def test_h_stays_in_its_range() -> None:
    assert {minutes(Cron("H(5-9) * * * *", seed=seed))[0] for seed in SEEDS} == {5, 6, 7, 8, 9}
    days = {trigger.parts(Cron("0 0 H * *", seed=seed))[0].day.numbers[-1] for seed in SEEDS}
    assert days == set(range(1, 29))
    weekdays = {trigger.parts(Cron("0 0 * * H", seed=seed))[0].weekday.numbers[-1] for seed in SEEDS}
    assert weekdays == set(range(7))


def test_h_with_a_step_is_regular() -> None:
    rows = {tuple(minutes(Cron("H/15 * * * *", seed=seed))) for seed in SEEDS}
    assert rows == {(first, first + 15, first + 30, first + 45) for first in range(15)}


def test_equal_expressions_are_parsed_once() -> None:
    one, other = Cron("7 3 * * 1-5", seed="shop.a"), Cron("7 3 * * 1-5", seed="shop.b")
    assert trigger.parts(one)[0] is trigger.parts(other)[0]
    assert trigger.parts(one)[1] is trigger.parts(Cron("8 3 * * *"))[1]


def test_an_expression_with_h_is_parsed_for_each_job() -> None:
    read = {trigger.parts(Cron("H H * * *", seed=seed))[0].minute for seed in SEEDS[:20]}
    assert len(read) > 5
    some = Cron("H H * * *", seed=SEEDS[0])
    assert trigger.parts(some)[0] is trigger.parts(Cron("H H * * *", "Asia/Tokyo", seed=SEEDS[0]))[0]
