"""`rota next`: a cron expression in words, and its next ticks."""

from __future__ import annotations

import calendar
import itertools
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from tests.cli.shell import Answer, Shell

BERLIN = ["--tz", "Europe/Berlin"]
SPRING = ["--from", "2026-03-28T00:00Z"]
AUTUMN = ["--from", "2026-10-24T00:00Z"]


def upcoming(shell: Shell, expression: str, *words: str) -> Answer:
    return shell.ok("next", expression, *words, "--json")


def test_ticks_come_in_utc_and_on_the_local_clock(shell: Shell) -> None:
    answer = shell.ok("next", "0 9 * * 1-5", *BERLIN, "-n", "3", "--from", "2026-01-30T07:59Z")
    assert answer.err == ("at 09:00 on Monday to Friday, in Europe/Berlin\n")
    assert [line.split() for line in answer.out.splitlines()] == [
        ["UTC", "LOCAL", "NOTE"],
        ["2026-01-30T08:00:00Z", "2026-01-30", "09:00:00", "CET", "(Fri)"],
        ["2026-02-02T08:00:00Z", "2026-02-02", "09:00:00", "CET", "(Mon)"],
        ["2026-02-03T08:00:00Z", "2026-02-03", "09:00:00", "CET", "(Tue)"],
    ]


def test_json_is_an_array_of_instants_behind_the_given_one(shell: Shell) -> None:
    answer = upcoming(shell, "*/15 * * * *", "-n", "2", "--from", "2026-01-01T00:15:00+00:00")
    assert answer.rows == ["2026-01-01T00:30:00Z", "2026-01-01T00:45:00Z"]
    assert upcoming(shell, "30 0 9 * * *", "-n", "1", *SPRING).rows == ["2026-03-28T09:00:30Z"]


def test_ten_ticks_from_now_on_unless_told_otherwise(shell: Shell) -> None:
    before = datetime.now(UTC)
    found = [datetime.fromisoformat(text) for text in upcoming(shell, "* * * * *").rows]
    assert len(found) == 10
    assert 0 < (found[0] - before).total_seconds() <= 120
    assert {(later - earlier).total_seconds() for earlier, later in itertools.pairwise(found)} == {60.0}


@pytest.mark.parametrize(
    ("words", "second", "warning"),
    [
        ([], "2026-03-29T01:00:00Z", "does not exist on 2026-03-29: it runs once, right after the gap"),
        (["--dst-gap", "skip"], "2026-03-30T00:30:00Z", "does not exist on 2026-03-29: it is left out"),
    ],
)
def test_a_time_that_is_left_out_is_warned_of(shell: Shell, words: list[str], second: str, warning: str) -> None:
    answer = upcoming(shell, "30 2 * * *", *BERLIN, *SPRING, "-n", "2", *words)
    assert answer.rows == ["2026-03-28T01:30:00Z", second]
    assert f"warning: its time {warning}\n" in answer.err


def test_a_day_that_is_left_out_is_named(shell: Shell) -> None:
    """Samoa had no 30 December 2011."""
    answer = upcoming(shell, "0 9 * * *", "--tz", "Pacific/Apia", "--from", "2011-12-29T20:00Z", "-n", "2")
    assert answer.rows == ["2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"]
    assert "warning: its time does not exist on 2011-12-30: it runs once, right after the gap\n" in answer.err


@pytest.mark.parametrize(
    ("overlap", "ticks", "words"),
    [
        ("first", ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"], "once, the first time"),
        ("second", ["2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"], "once, the second time"),
        ("both", ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"], "both times"),
    ],
)
def test_a_time_that_comes_twice_is_warned_of(shell: Shell, overlap: str, ticks: list[str], words: str) -> None:
    answer = upcoming(shell, "30 2 * * *", *BERLIN, *AUTUMN, "-n", "3", "--dst-overlap", overlap)
    assert answer.rows == ["2026-10-24T00:30:00Z", *ticks]
    assert f"warning: its time comes twice on 2026-10-25: it runs {words}\n" in answer.err


def test_the_date_of_a_warning_is_that_of_the_zone(shell: Shell) -> None:
    """In Sydney clocks are changed at 16:00 UTC of the day before."""
    answer = upcoming(shell, "30 2 * * *", "--tz", "Australia/Sydney", "-n", "1", "--from", "2026-09-01T00:00Z")
    assert "does not exist on 2026-10-04" in answer.err


def test_what_follows_real_time_is_not_warned_of(shell: Shell) -> None:
    assert "warning" not in upcoming(shell, "*/30 * * * *", *BERLIN, *SPRING).err
    assert "warning" not in upcoming(shell, "30 2 * * *", *SPRING).err


def test_h_is_the_number_of_the_job(shell: Shell) -> None:
    times = {
        upcoming(shell, "H H * * *", "-n", "1", *SPRING, "--job", f"shop.{name}").rows[0]
        for name in ("a", "b", "c", "a")
    }
    assert len(times) == 3


def test_a_list_may_be_long_and_an_expression_rare(shell: Shell) -> None:
    rows = upcoming(shell, "0 0 29 2 *", "-n", "100", *SPRING).rows
    years = [year for year in range(2028, 2500) if calendar.isleap(year)][:100]
    assert rows == [f"{year}-02-29T00:00:00Z" for year in years]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["61 * * * *"], "minute: 61 is not between 0 and 59"),
        (["* 24 * * *"], "hour: 24"),
        (["0 0 30 2 *"], "day of month: '0 0 30 2 *' never fires"),
        (["0 9 * * MON#6"], "day of week: 'MON#6'"),
        (["* * *"], "has 3"),
        ([""], "has 0"),
        (["\x1b[31m 9 * * *"], "minute: '\\x1b[31m'"),
        (["1" * 5000], "at most 512 characters"),
        (["@often"], "@often"),
        ([], "missing argument 'EXPRESSION'"),
        (["0 9 * * *", "--tz", "Europe/Berln"], "tz: there is no zone 'Europe/Berln'; did you mean 'Europe/Berlin'?"),
        (["0 9 * * *", "--tz", "../etc/localtime"], "tz: there is no zone"),
        (["0 9 * * *", "-n", "0"], "'-n'"),
        (["0 9 * * *", "-n", "10001"], "'-n'"),
        (["0 9 * * *", "--from", "tomorrow"], "'--from': 'tomorrow' is not a time"),
        (["0 9 * * *", "--from", "2026-01-01T00:00"], "no time zone"),
        (["0 9 * * *", "--from", "0001-01-01T00:00Z"], "'--from': must be between the years 1970 and 8999, not 1"),
        (["0 9 * * *", "--from", "9999-12-31T23:59Z"], "'--from': must be between the years 1970 and 8999, not 9999"),
        (["0 9 * * *", "--dst-gap", "leap"], "--dst-gap"),
    ],
)
def test_bad_input_is_one_line_that_names_the_field(shell: Shell, words: list[str], says: str) -> None:
    assert says in shell.refused("next", *words)


def test_it_needs_no_database_and_loads_little(shell: Shell) -> None:
    code = (
        "import sys, rota.cli.main as main; sys.argv = ['rota', 'next', '0 9 * * *', '--json']\n"
        "try: main.main()\n"
        "finally: print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=shell.folder, env=shell.env, capture_output=True, text=True, check=True
    )
    assert {"rich", "asyncio", "sqlite3", "rota.sdk", "rota.engine", "rota.store"}.isdisjoint(done.stderr.split())
    assert [path.name for path in shell.folder.iterdir()] == ["shop.py"]
