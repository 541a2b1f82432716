"""Cron against a library that others use, `cronsim`, which follows Debian's cron.

In UTC the two agree on every expression that both accept. They differ in this, and each has an example below:

- cronsim has no `?`, `15W`, `L-3`, `H`, aliases, or names before `L`;
- it takes steps longer than the field, a step behind `L`, and some expressions that never fire, all refused here;
- `5-5/10` is a range of one number here, and `5/10` in cronsim;
- a step that does not begin with `*`, such as `0/20`, follows real time here, and names times of day in cronsim;
- six fields may name times of day here, and always follow real time in cronsim;
- cronsim walks by whole hours, and loses the first half of one after a change of the clock by half an hour.

Where both take an expression for the same kind, they agree around changes of the clock as well.
"""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError

from rota.domain import cron
from rota.domain.errors import DefinitionError
from rota.domain.ticks import ticks
from rota.domain.zone import zone
from tests.cron.oracle import utc
from tests.cron.windows import Window, windows

WHOLE_HOURS = ("Europe/Berlin", "America/New_York", "Africa/Cairo", "Pacific/Apia", "Antarctica/Troll", "Asia/Tehran")
DAYS = ("L", "LW", "*", "*")
MONTHS = ("JAN", "MAR-NOV", "DEC,JAN", "*", "*")
WEEKDAYS = ("MON", "SUN", "MON-FRI", "5L", "0L", "7L", "FRI#2", "7#1", "2#5", "*", "*")


def ours(expression: str, window: Window) -> list[int]:
    """Every tick in [start, end)."""
    found = (tick.at for tick in ticks(cron.parse(expression), zone(window.zone), window.start - 1))
    return list(itertools.takewhile(lambda at: at < window.end, found))


def theirs(expression: str, window: Window) -> list[int]:
    where = UTC if window.zone == "UTC" else ZoneInfo(window.zone)
    found = (int(at.timestamp()) for at in CronSim(expression, datetime.fromtimestamp(window.start - 1, where)))
    return list(itertools.takewhile(lambda at: at < window.end, found))


def shown(instants: list[int], name: str) -> list[str]:
    return [f"{datetime.fromtimestamp(at, ZoneInfo(name)):%H:%M%z}" for at in instants]


def day(name: str, year: int, month: int, number: int) -> Window:
    start = datetime(year, month, number, tzinfo=ZoneInfo(name))
    return Window(name, int(start.timestamp()), int((start + timedelta(days=1)).timestamp()))


def item(entropy: random.Random, low: int, high: int) -> str:
    first, last = sorted(entropy.sample(range(low, high + 1), 2))
    step = entropy.randint(1, min(7, high - low))
    return entropy.choice(
        ["*", f"{first}", f"{first}-{last}", f"*/{step}", f"{first}-{last}/{step}", f"{first}/{step}"]
    )


def field(entropy: random.Random, low: int, high: int, special: tuple[str, ...] = ()) -> str:
    size = entropy.choice([1, 1, 1, 2, 3])
    is_special = [bool(special) and entropy.random() < 0.4 for _ in range(size)]
    return ",".join(entropy.choice(special) if other else item(entropy, low, high) for other in is_special)


def expression_of(entropy: random.Random) -> str:
    days = [field(entropy, 1, 31, DAYS), field(entropy, 1, 12, MONTHS), field(entropy, 0, 7, WEEKDAYS)]
    seconds = [field(entropy, 0, 59)] if entropy.random() < 0.3 else []
    return " ".join([*seconds, field(entropy, 0, 59), field(entropy, 0, 23), *days])


def test_rota_and_cronsim_agree_on_hundreds_of_expressions() -> None:
    entropy = random.Random(5)
    compared, never = 0, []
    for _ in range(600):
        text, after = expression_of(entropy), entropy.randrange(utc(2000), utc(2040))
        library = CronSim(text, datetime.fromtimestamp(after, UTC))
        try:
            parsed = cron.parse(text)
        except DefinitionError:
            never.append(next(library, None))
            continue
        wanted = [int(at.timestamp()) for at in itertools.islice(library, 4)]
        assert [tick.at for tick in itertools.islice(ticks(parsed, zone("UTC"), after), 4)] == wanted, text
        compared += 1
    assert compared >= 590
    assert [found for found in never if found is not None] == []


@pytest.mark.parametrize("name", WHOLE_HOURS)
def test_rota_and_cronsim_agree_around_clock_changes(name: str) -> None:
    entropy = random.Random(name)
    for window in entropy.choices(windows(name), k=40):
        minute = entropy.choice(["*", "0", "30", "*/20", "5-10", "0,30", str(entropy.randrange(60))])
        hour = entropy.choice(["*", "2", "*/2", "1-3", "0,2,23", "1,2", str(entropy.randrange(24))])
        text = f"{minute} {hour} * * *"
        assert ours(text, window) == theirs(text, window), (text, str(window))


@pytest.mark.parametrize(
    "expression", ["0 0 ? * 1", "0 0 15W * *", "0 0 L-3 * *", "H * * * *", "@daily", "0 0 * * FRIL"]
)
def test_expressions_that_only_rota_accepts(expression: str) -> None:
    cron.parse(expression)
    with pytest.raises(CronSimError):
        CronSim(expression, datetime(2025, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("expression", ["*/61 * * * *", "0 0 L/2 * *"])
def test_expressions_that_only_cronsim_accepts(expression: str) -> None:
    assert next(CronSim(expression, datetime(2025, 1, 1, tzinfo=UTC))).year == 2025
    with pytest.raises(DefinitionError):
        cron.parse(expression)


@pytest.mark.parametrize("expression", ["0 0 */28 2 0#2", "0 0 LW * */7"])
def test_cronsim_accepts_days_that_never_come(expression: str) -> None:
    assert next(CronSim(expression, datetime(2025, 1, 1, tzinfo=UTC)), None) is None
    with pytest.raises(DefinitionError, match="never fires"):
        cron.parse(expression)


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6 *"])
def test_both_refuse_a_date_that_does_not_exist(expression: str) -> None:
    with pytest.raises(CronSimError):
        CronSim(expression, datetime(2025, 1, 1, tzinfo=UTC))
    with pytest.raises(DefinitionError):
        cron.parse(expression)


def test_a_step_in_a_range_of_one() -> None:
    hour = Window("UTC", utc(2025), utc(2025) + 3600)
    assert shown(ours("5-5/20 * * * *", hour), "UTC") == ["00:05+0000"]
    assert shown(theirs("5-5/20 * * * *", hour), "UTC") == ["00:05+0000", "00:25+0000", "00:45+0000"]
    assert ours("5/20 * * * *", hour) == theirs("5/20 * * * *", hour) == theirs("5-5/20 * * * *", hour)


def test_a_step_without_a_star_in_a_gap() -> None:
    spring = day("Europe/Berlin", 2025, 3, 30)
    assert ours("0/20 2 * * *", spring) == ours("*/20 2 * * *", spring) == []
    assert theirs("*/20 2 * * *", spring) == []
    assert shown(theirs("0/20 2 * * *", spring), "Europe/Berlin") == ["03:00+0200"]


def test_a_step_without_a_star_in_an_overlap() -> None:
    autumn = day("Europe/Berlin", 2025, 10, 26)
    twice = ["02:00+0200", "02:30+0200", "02:00+0100", "02:30+0100"]
    assert shown(ours("0/30 2 * * *", autumn), "Europe/Berlin") == twice
    assert shown(theirs("0/30 2 * * *", autumn), "Europe/Berlin") == twice[:2]


def test_six_fields_when_clocks_are_changed() -> None:
    spring, autumn = day("Europe/Berlin", 2025, 3, 30), day("Europe/Berlin", 2025, 10, 26)
    assert shown(ours("0 30 2 * * *", spring), "Europe/Berlin") == ["03:00+0200"]
    assert theirs("0 30 2 * * *", spring) == []
    assert shown(ours("0 30 2 * * *", autumn), "Europe/Berlin") == ["02:30+0200"]
    assert shown(theirs("0 30 2 * * *", autumn), "Europe/Berlin") == ["02:30+0200", "02:30+0100"]


@pytest.mark.parametrize(("month", "number", "ahead"), [(4, 6, "+1030"), (10, 5, "+1100")])
def test_the_hour_after_a_change_by_half_an_hour(month: int, number: int, ahead: str) -> None:
    window = day("Australia/Lord_Howe", 2025, month, number)
    wanted = [f"03:{minute}{ahead}" for minute in ("00", "15", "30", "45")]
    assert shown(ours("*/15 3 * * *", window), "Australia/Lord_Howe") == wanted
    assert shown(theirs("*/15 3 * * *", window), "Australia/Lord_Howe") == wanted[2:]
