"""Cron against the oracle: around changes of clocks in every kind of zone, and over whole months far from any."""

from __future__ import annotations

import random
import zoneinfo

import pytest

from rota.domain import cron
from rota.domain.ticks import Gap, Repeat, count, last, ticks
from rota.domain.zone import zone
from tests.cron.compare import difference
from tests.cron.oracle import utc
from tests.cron.windows import EXPRESSIONS, Window, invented, windows
from tests.support.proving import sampled

ODD = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Africa/Cairo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Tehran",
    "Asia/Kathmandu",
    "Pacific/Chatham",
    "America/Asuncion",
    "Asia/Gaza",
    "Europe/Dublin",
    "America/Caracas",
)
SHARE = 12
FEW = 5


@pytest.mark.parametrize("name", sampled(ODD, FEW))
def test_the_oracle_agrees_around_clock_changes(name: str) -> None:
    entropy = random.Random(name)
    known = windows(name)
    problems = []
    for window in entropy.sample(known, min(SHARE, len(known))):
        expression = entropy.choice([*EXPRESSIONS, invented(entropy), invented(entropy)])
        problems.append(difference(expression, window, entropy.choice(list(Gap)), entropy.choice(list(Repeat))))
    assert [problem for problem in problems if problem] == []


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_oracle_agrees_on_every_expression(expression: str) -> None:
    entropy = random.Random(expression)
    name = entropy.choice(ODD)
    window = entropy.choice(windows(name) or [Window(name, utc(2020), utc(2020, 1, 4))])
    assert difference(expression, window) is None


@pytest.mark.parametrize("seed", sampled(range(40), FEW))
def test_the_oracle_agrees_in_any_zone_at_any_time(seed: int) -> None:
    entropy = random.Random(seed)
    name = entropy.choice(sorted(zoneinfo.available_timezones() - {"localtime", "Factory"}))
    start = entropy.randrange(utc(2000), utc(2039))
    window = Window(name, start, start + entropy.randrange(1, 12) * 86_400)
    assert difference(invented(entropy), window) is None


@pytest.mark.parametrize("seed", range(40))
def test_the_number_of_ticks_and_the_last_tick_agree_with_a_list_of_all(seed: int) -> None:
    entropy = random.Random(seed)
    window = entropy.choice(windows(entropy.choice([name for name in ODD if windows(name)])))
    expression = entropy.choice([*EXPRESSIONS, invented(entropy)])
    parsed, where, overlap = cron.parse(expression), zone(window.zone), entropy.choice(list(Repeat))
    start = entropy.randrange(window.start, window.end)
    every = []
    for tick in ticks(parsed, where, start, overlap):
        if tick.at >= window.end:
            break
        every.append(tick)
    assert count(parsed, where, start, window.end - 1, overlap) == len(every)
    assert last(parsed, where, start, window.end - 1, overlap) == (every[-1] if every else None)
