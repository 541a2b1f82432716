"""An invalid schedule is refused when it is declared, and the error names the field."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain import cron, trigger
from rota.domain.errors import DefinitionError
from rota.domain.trigger import After, At, Cron, Every
from rota.domain.zone import zone

SECOND = 1_000_000
MEGABYTE = 1_000_000
LONG = pytest.param("Europe/" * MEGABYTE, id="long")
MALFORMED = {
    "second": ["60 * * * * *", "*/0 * * * * *", "L * * * * *"],
    "minute": [
        *("60 * * * *", "-1 * * * *", "-5 * * * *", "0- * * * *", "- * * * *", "1-2-3 * * * *"),
        *(", * * * *", "1,,2 * * * *", ",1 * * * *", "1, * * * *", "1;2 * * * *"),
        *("*/0 * * * *", "*/61 * * * *", "*/ * * * *", "*/-1 * * * *", "*/1.5 * * * *", "/5 * * * *", "1/2/3 * * * *"),
        *("** * * * *", "*5 * * * *", "*-5 * * * *", "? * * * *", "L * * * *", "15W * * * *", "5#2 * * * *"),
        *("H(5-2) * * * *", "H(0-60) * * * *", "H(5) * * * *", "H( * * * *", "H-5 * * * *", "HH * * * *"),
        *("H/0 * * * *", "H(-) * * * *", "MON * * * *", "JAN * * * *", "+5 * * * *", "5.0 * * * *", "1e1 * * * *"),
        *("0x5 * * * *", "1_0 * * * *", "99999999999999999999 * * * *", "0\x00 * * * *", "\x00 * * * *"),
        *("٣ * * * *", "５ * * * *", "² * * * *", "*/٣ * * * *", "H(٣-٥) * * * *", "\ud800 * * * *"),
    ],
    "hour": ["* 24 * * *", "* ? * * *", "* JAN * * *", "* L * * *", "* */25 * * *", "* H(0-24) * * *"],
    "day of month": [
        *("* * 0 * *", "* * 32 * *", "* * MON * *", "* * JAN * *", "* * ?5 * *", "* * 5#2 * *", "* * 5L * *"),
        *("* * L-31 * *", "* * L-x * *", "* * L- * *", "* * L-٣ * *", "* * LW-1 * *", "* * WL * *", "* * W * *"),
        *(
            "* * 0W * *",
            "* * 32W * *",
            "* * 1-5W * *",
            "* * L/2 * *",
            "* * 1-L * *",
            "* * L-3WW * *",
            "* * L-31W * *",
            "* * 28-3/2 * *",
            "* * H(0-5) * *",
            "* * */32 * *",
        ),
    ],
    "month": ["* * * 0 *", "* * * 13 *", "* * * MON *", "* * * JANUARYS *", "* * * ma *", "* * * ? *", "* * * L *"],
    "day of week": [
        *("* * * * 8", "* * * * JAN", "* * * * MONDAYS", "* * * * TH", "* * * * MON#LL", "* * * * 15W", "* * * * */8"),
        *("* * * * 5#6", "* * * * 5#0", "* * * * 5#", "* * * * #2", "* * * * 5#-1", "* * * * 5#2#3", "* * * * 1-5#2"),
        *("* * * * 5#٣", "* * * * ?#2", "* * * * L", "* * * * l", "* * * * 8L", "* * * * L5", "* * * * *L"),
        *("* * * * 1L-3", "0 0 L * L"),
    ],
}
NEVER = [
    *("0 0 30 2 *", "0 0 31 4,6 *", "0 0 30,31 2 ?", "0 0 31W 4 *", "0 0 L-30 2 *", "0 0 L-29 2 *", "0 0 */28 2 0#2"),
    *("0 0 LW * */7", "0 0 H(30-31) 2 *", "0 0 0 31 JUN *"),
]
FIVE = r"^a cron expression has 5 fields \(minute, hour, day of month, month, day of week\), or 6 with seconds first; "


@pytest.mark.parametrize(("field", "expression"), [(name, text) for name, all_ in MALFORMED.items() for text in all_])
def test_a_malformed_field_is_named(field: str, expression: str) -> None:
    with pytest.raises(DefinitionError, match=f"^{field}: "):
        cron.parse(expression)
    with pytest.raises(DefinitionError, match=f"^{field}: "):
        trigger.check(Cron(expression, seed="shop.report"))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("* * 28-3/2 * *", "'28-3/2' steps past the end of the month: write the days as a list, such as 28,30,1,3"),
        ("* * L/2 * *", "'L' cannot be part of a range or have a step: write it as an item of its own"),
        ("* * 20-L * *", "'L' cannot be part of a range or have a step: write it as an item of its own"),
        ("* * x * *", "'x' is not a number, L, L-3, LW, L-3W or 15W"),
        ("* * 1-x * *", "'x' is not a number"),
    ],
)
def test_a_refusal_says_what_to_write(expression: str, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        cron.parse(expression)
    assert str(refused.value) == f"day of month: {message}"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("@every 5m", "cron: '@every' is an interval, not a cron expression: write every='5m' instead"),
        ("@EVERY 1h 30m", "cron: '@every' is an interval, not a cron expression: write every='1h 30m' instead"),
        ("@every", "cron: '@every' is an interval, not a cron expression: write every='5m' instead"),
        (
            "CRON_TZ=Europe/Paris 0 9 * * *",
            "cron: the zone is an option: leave out CRON_TZ= and write tz='Europe/Paris' beside it",
        ),
        ("TZ=UTC @daily", "cron: the zone is an option: leave out TZ= and write tz='UTC' beside it"),
    ],
)
def test_the_error_for_syntax_of_other_schedulers_names_the_option(expression: str, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        cron.parse(expression)
    assert str(refused.value) == message


@pytest.mark.parametrize("expression", NEVER)
def test_an_expression_that_never_fires_is_refused(expression: str) -> None:
    with pytest.raises(DefinitionError, match=r"^day of month: .* never fires"):
        cron.parse(expression)


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 29 2 ?", "0 0 * 2 1#5", "0 0 30 2 1", "0 0 L-28 2 *"])
def test_an_expression_that_fires_rarely_is_accepted(expression: str) -> None:
    assert trigger.first(Cron(expression), 0) is not None


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        *(("", 0), (" \t\n ", 0), ("*", 1), ("\x00", 1), ("* * * *", 4), ("* * * * * * *", 7), ("@daily 0", 2)),
        ("0 0 * * *\n0 1 * * *", 10),
    ],
)
def test_a_wrong_number_of_fields_is_refused(expression: str, number: int) -> None:
    with pytest.raises(DefinitionError, match=f"{FIVE}.* has {number}$"):
        cron.parse(expression)


def test_any_white_space_separates_fields() -> None:
    assert cron.parse(" 0\t9 * *\n1-5\n") == cron.parse("0 9 * * 1-5")


@pytest.mark.parametrize("alias", ["@reboot", "@", "@everyday", "@Dayly", "@daily\x00", "@" * 400])
def test_an_unknown_alias_is_refused(alias: str) -> None:
    with pytest.raises(DefinitionError, match=r"^cron: '@.*' is none of @yearly, .*, @hourly$") as refused:
        cron.parse(alias)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "expression",
    ["*" * MEGABYTE, "1," * MEGABYTE + "1 * * * *", " " * MEGABYTE, "9" * MEGABYTE + " * * * *", "@" * MEGABYTE],
    ids=["stars", "list", "blank", "digits", "alias"],
)
def test_an_expression_that_is_too_long_is_refused_unread(expression: str) -> None:
    with pytest.raises(DefinitionError, match=f"^a cron expression is a text of at most {cron.LONGEST} characters$"):
        cron.parse(expression)


def test_the_longest_allowed_expression_is_accepted() -> None:
    rest = " * * * *"
    longest = ",".join(["59"] * 200)[: cron.LONGEST - len(rest)].rstrip(",")
    assert cron.parse(longest.ljust(cron.LONGEST - len(rest)) + rest).minute.numbers == (59,)
    with pytest.raises(DefinitionError, match=str(cron.LONGEST)):
        cron.parse(longest.ljust(cron.LONGEST - len(rest) + 1) + rest)


def test_an_error_is_short_for_any_expression() -> None:
    for text in ("x" * 500, "1" * 500, "*/" + "9" * 490, "H(" + "1" * 490, "-" * 490, "," * 490):
        with pytest.raises(DefinitionError) as refused:
            cron.parse(f"{text} * * * *")
        assert len(str(refused.value)) < 700


@pytest.mark.parametrize("value", [None, 5, 0.5, True, b"* * * * *", ["* * * * *"], ("*",) * 5, {}, object()])
def test_an_expression_that_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(DefinitionError, match=r"^a cron expression is a text"):
        cron.parse(value)
    with pytest.raises(DefinitionError, match=r"^cron: must be a text, not "):
        trigger.check(Cron(value, seed="shop.report"))


@pytest.mark.parametrize("value", [None, 5, True, b"UTC", ["UTC"], {}, "", "x" * 101, LONG])
def test_a_zone_that_is_no_name_is_refused(value: Any) -> None:
    with pytest.raises(DefinitionError, match=r"^tz: a zone is an IANA name such as 'Europe/Berlin'$"):
        zone(value)
    with pytest.raises(DefinitionError, match=r"^tz: "):
        trigger.check(Cron("* * * * *", value))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("Europe/Berlin\n", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("America/NewYork", "America/New_York"),
        ("utc", "UTC"),
    ],
)
def test_the_error_for_an_unknown_zone_suggests_a_known_one(name: str, meant: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        zone(name)
    assert str(refused.value) == f"tz: there is no zone {name!r}; did you mean {meant!r}?"


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "a\0b", "\ud800", "zone.tab", "/etc/localtime", "٣"])
def test_the_error_for_a_zone_that_resembles_none_has_no_suggestion(name: str) -> None:
    with pytest.raises(DefinitionError, match=r"^tz: there is no zone .*; use an IANA name such as 'Europe/Berlin'$"):
        zone(name)


@pytest.mark.parametrize("name", ["localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin"])
def test_a_zone_is_the_same_on_every_machine(name: str) -> None:
    with pytest.raises(DefinitionError, match=r"^tz: .* is not the same on every machine"):
        zone(name)


@pytest.mark.parametrize(
    ("field", "refused"),
    [
        *(("every", Every(0)), ("every", Every(-SECOND)), ("every", Every(SECOND - 1))),
        *(("phase", Every(SECOND, SECOND)), ("phase", Every(SECOND, -1))),
        *(("after", After(0)), ("after", After(SECOND - 1))),
        *(("at", At(())), ("at", At(tuple(range(trigger.MOST_INSTANTS + 1))))),
    ],
)
def test_other_triggers_have_bounds(field: str, refused: Every | After | At) -> None:
    with pytest.raises(DefinitionError, match=f"^{field}: "):
        trigger.check(refused)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("-5 * * * *", "minute: a number is missing in '-5'"),
        ("* * * * 5#6", "day of week: '5#6': after # comes which one of the month it is, 1 to 5, or L for the last"),
        ("* 24 * * *", "hour: 24 is not between 0 and 23"),
        ("*/0 * * * *", "minute: a step of 0 is not between 1 and 60"),
        ("* * MON * *", "day of month: 'MON' is not a number, L, L-3, LW, L-3W or 15W"),
    ],
)
def test_the_error_says_what_to_do(expression: str, words: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        cron.parse(expression)
    assert str(refused.value) == words
