"""Cron expressions in words."""

from __future__ import annotations

import pytest

from rota.domain.trigger import After, At, Cron, Every, Trigger
from rota.domain.trigger_words import explain
from tests.cron.oracle import utc

SECOND = 1_000_000
WORDS = {
    # How often.
    "* * * * *": "every minute",
    "*/5 * * * *": "every 5 minutes",
    "0 * * * *": "every hour",
    "@hourly": "every hour",
    "0 */2 * * *": "every 2 hours",
    "0 1/2 * * *": "every 2 hours from 01:00 to 23:00",
    "0 9-17 * * *": "every hour from 09:00 to 17:00",
    "30 * * * *": "at minute 30 of every hour",
    "15,45 * * * *": "at minutes 15 and 45 of every hour",
    "*/40 * * * *": "at minutes 0 and 40 of every hour",
    "*/7 * * * *": "every 7 minutes from minute 0 to 56 of every hour",
    "1-59/2 * * * *": "every 2 minutes from minute 1 to 59 of every hour",
    "5-10 * * * *": "at minutes 5 to 10 of every hour",
    "7/20 * * * *": "at minutes 7, 27 and 47 of every hour",
    "30 */2 * * *": "at minute 30 of every 2nd hour",
    "* */2 * * *": "every minute of every 2nd hour",
    "*/5 */2 * * *": "every 5 minutes of every 2nd hour",
    "* 9 * * *": "every minute of hour 9",
    "0 0-12,14-23 * * *": "at minute 0 of hours 0 to 12 and 14 to 23 every day",
    "0,20 0-12,14-23 * * *": "at minutes 0 and 20 of hours 0 to 12 and 14 to 23 every day",
    "*/15 9-17 * * 1-5": "every 15 minutes of hours 9 to 17 on Monday to Friday",
    # With seconds.
    "* * * * * *": "every second",
    "*/10 * * * * *": "every 10 seconds",
    "*/7 * * * * *": "every 7 seconds from second 0 to 56 of every minute",
    "30 * * * * *": "at second 30 of every minute",
    "30 */5 * * * *": "at second 30 of every 5th minute",
    "30 5 * * * *": "at second 30 of minute 5 of every hour",
    "0,30 0 * * * *": "every 30 seconds of minute 0 of every hour",
    "*/10 */5 9-17 * * *": "every 10 seconds of every 5th minute of hours 9 to 17",
    "30 * 5 * * *": "at second 30 of every minute of hour 5 every day",
    "15 30 2 * * *": "at 02:30:15 every day",
    "0 */30 * * * *": "every 30 minutes",
    "0 0 0 * * *": "at 00:00 every day",
    # Times of day.
    "0 0 * * *": "at 00:00 every day",
    "@daily": "at 00:00 every day",
    "30 1-4 * * *": "at 01:30, 02:30, 03:30 and 04:30 every day",
    "*/10 9 * * *": "at 09:00, 09:10, 09:20, 09:30, 09:40 and 09:50 every day",
    "0 */5 * * *": "at 00:00, 05:00, 10:00, 15:00 and 20:00 every day",
    "15 */12 * * *": "at 00:15 and 12:15 every day",
    "59 23 31 12 *": "at 23:59 on day 31 of December",
    "0 22-2 * * *": "at 00:00, 01:00, 02:00, 22:00 and 23:00 every day",
    "0 22-2/2 * * *": "at 00:00, 02:00 and 22:00 every day",
    "0 0 * * FRI-MON": "at 00:00 on Monday and Friday to Sunday",
    "0 0 * * FRI-MON/2": "at 00:00 on Sunday and Friday",
    "0 0 * * MON#L": "at 00:00 on the last Monday of the month",
    "0 0 L-3W * *": "at 00:00 on the weekday (Monday to Friday) nearest to the day 3 days before the last of the month",
    # Days of the month.
    "0 0 1 * *": "at 00:00 on day 1 of the month",
    "0 0 1,15 * *": "at 00:00 on days 1 and 15 of the month",
    "0 0 1-7 * *": "at 00:00 on days 1 to 7 of the month",
    "0 0 */2 * *": "at 00:00 on every 2nd day from 1 to 31 of the month",
    "0 0 */10 * *": "at 00:00 on days 1, 11, 21 and 31 of the month",
    "0 0 L * *": "at 00:00 on the last day of the month",
    "0 0 L-1 * *": "at 00:00 on the day before the last of the month",
    "0 0 L-3 * *": "at 00:00 on the day 3 days before the last of the month",
    "0 0 15,L * *": "at 00:00 on day 15 and the last day of the month",
    "0 0 LW * *": "at 00:00 on the last weekday (Monday to Friday) of the month",
    "0 0 15W * *": "at 00:00 on the weekday (Monday to Friday) nearest to day 15 of the month",
    "0 0 1W,15W * *": "at 00:00 on the weekday (Monday to Friday) nearest to day 1 and day 15 of the month",
    "* * 1 * *": "every minute on day 1 of the month",
    "0 0 1-31 * *": "at 00:00 every day",
    "0 0 1-31,L * *": "at 00:00 every day",
    # Days of the week.
    "0 9 * * MON-FRI": "at 09:00 on Monday to Friday",
    "@weekly": "at 00:00 on Sunday",
    "30 2 * * 6,0": "at 02:30 on Saturday and Sunday",
    "0 0 * * 5-7": "at 00:00 on Friday to Sunday",
    "0 0 * * 0-4": "at 00:00 on Sunday to Thursday",
    "0 0 * * 1,3,5": "at 00:00 on Monday, Wednesday and Friday",
    "0 0 ? * MON": "at 00:00 on Monday",
    "0 9 * * 5#2": "at 09:00 on the second Friday of the month",
    "0 9 * * 5#2,5#4": "at 09:00 on the second Friday and the fourth Friday of the month",
    "0 9 * * 5L": "at 09:00 on the last Friday of the month",
    "0 9 * * 1,5L": "at 09:00 on the last Friday of the month and Monday",
    "0 0 * * 0-6": "at 00:00 every day",
    # Both.
    "0 0 13 * FRI": "at 00:00 on day 13 of the month and on Friday",
    "0 0 1,L * MON": "at 00:00 on day 1 and the last day of the month and on Monday",
    "0 0 */2 * SUN": "at 00:00 on every 2nd day from 1 to 31 of the month if it is Sunday",
    "0 0 */2 * 1,5": "at 00:00 on every 2nd day from 1 to 31 of the month if it is Monday or Friday",
    "0 0 8-14 * */7": "at 00:00 on days 8 to 14 of the month if it is Sunday",
    "0 0 1-31 * MON": "at 00:00 every day",
    "0 0 1 * 0-6": "at 00:00 every day",
    "0 0 1W * 5#1": (
        "at 00:00 on the weekday (Monday to Friday) nearest to day 1 of the month and on the first Friday of the month"
    ),
    # Months.
    "@yearly": "at 00:00 on day 1 of January",
    "0 0 29 2 *": "at 00:00 on day 29 of February",
    "0 0 1 */6 *": "at 00:00 on day 1 of January and July",
    "0 0 * 6-8 *": "at 00:00 every day in June to August",
    "0 0 * */3 *": "at 00:00 every day in January, April, July and October",
    "0 0 * 3 SUN#2": "at 00:00 on the second Sunday of March",
    "0 0 * 3 1,5L": "at 00:00 on the last Friday of the month and Monday in March",
    "0 0 13 3 5": "at 00:00 on day 13 of the month and on Friday, but only in March",
    "30 */2 * 3 *": "at minute 30 of every 2nd hour in March",
    "*/5 9-17 1 1 *": "every 5 minutes of hours 9 to 17 on day 1 of January",
    "0 12-18 L 2 ?": "every hour from 12:00 to 18:00 on the last day of February",
}
OTHERS: dict[str, Trigger] = {
    "every 1 s": Every(SECOND),
    "every 1.5 s": Every(3 * SECOND // 2),
    "every 59.96 s": Every(59_960_000),
    "every 5 m": Every(300 * SECOND),
    "every 1 h 1 m 1 s": Every(3661 * SECOND),
    "every 7 d": Every(7 * 86_400 * SECOND),
    "every 5 m, 30.25 s after the full interval": Every(300 * SECOND, 30_250_000),
    "10 m after the end of the run before": After(600 * SECOND),
    "once at 2026-12-24 00:00:00 UTC": At((utc(2026, 12, 24) * SECOND,)),
    "at 2 instants from 2026-12-24 00:00:00 UTC to 2027-01-01 00:00:00 UTC": At(
        (utc(2027) * SECOND, utc(2026, 12, 24) * SECOND)
    ),
}


@pytest.mark.parametrize(("expression", "words"), WORDS.items())
def test_an_expression_in_words(expression: str, words: str) -> None:
    assert explain(Cron(expression)) == f"{words}, in UTC"


@pytest.mark.parametrize(("words", "other"), OTHERS.items())
def test_other_triggers_in_words(words: str, other: Trigger) -> None:
    assert explain(other) == words


def test_the_words_name_the_zone() -> None:
    assert explain(Cron("0 9 * * 1-5", "Europe/Berlin")) == "at 09:00 on Monday to Friday, in Europe/Berlin"


def test_the_words_for_h_name_its_number() -> None:
    assert explain(Cron("H * * * *", seed="shop.report")) == "at minute 17 of every hour, in UTC"
    assert explain(Cron("H(7-7) H(3-3) * * *", seed="shop.report")) == "at 03:07 every day, in UTC"


def test_equivalent_expressions_have_the_same_words() -> None:
    same = ["0 9 * * 1-5", "0 9 ? * MON-FRI", "0 0 9 * * 1,2,3,4,5", "0  9 *\t* 1-3,4-5"]
    assert len({explain(Cron(expression)) for expression in same}) == 1
