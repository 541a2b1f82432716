"""What a terminal shows: rows that do not wrap, and ids that can be copied."""

from __future__ import annotations

import re

import pytest

from rota.domain.job import Definition
from rota.domain.outcome import Error, Failed
from rota.domain.schedule import Spec
from rota.domain.trigger import Cron
from rota.ops import schedule
from tests.cli.shell import Seed, Shell

LONG = "generate_the_monthly_revenue_report_for_one_region"
ERROR = "ConnectionError: the server at payments.internal.example.com:8443 refused the connection, " * 4
WIDE = "报告"
LISTS = "executions", "dead", "jobs", "queues", "workers", "namespaces", "load", "schedules"


@pytest.fixture
def full(shell: Shell, seed: Seed) -> Shell:
    """A database with long names, texts and notes."""
    parameters = {
        name: {"type": "str | None", "required": False} for name in ("region", "month", "currency", "refunds")
    }
    seed.define("shop", Definition(name=LONG, queue="reports-and-exports", parameters=parameters, description=ERROR))
    spec = Spec(job=LONG, trigger=Cron("30 2 * * 1-5", "America/New_York"), arguments="{}", queue="mail")
    seed.store.transact(schedule.put, "default", "shop", LONG, spec, "test")
    seed.enqueue(LONG, 3, queue="reports-and-exports")
    seed.run(Failed(Error("Wide", f"{WIDE * 60}\n{ERROR}")))
    seed.fail(2, ERROR)
    seed.enqueue(LONG, 2, delay_s=86_400)
    seed.enqueue(count=2)
    seed.join(queues=["mail", "reports-and-exports", "another-queue"])
    shell.ok("queues", "pause", "mail", "--note", ERROR)
    shell.ok("jobs", "pause", LONG, "--note", ERROR)
    return shell


def plain(shown: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()


def width(line: str) -> int:
    return len(line) + sum(line.count(char) for char in WIDE)


@pytest.mark.parametrize("columns", [80, 200])
def test_no_row_wraps(full: Shell, columns: int) -> None:
    for words in LISTS:
        code, shown = full.screen(words, columns=columns)
        lines = plain(shown)
        assert code == 0, shown
        assert len(lines) > 1
        assert max(map(width, lines)) <= columns, shown
        assert not any(line.endswith(" ") for line in lines), shown


def test_a_narrow_terminal_shows_the_ends_of_ids_and_commands_take_them(full: Shell, seed: Seed) -> None:
    for words in (["executions"], ["dead"]):
        ids = [row["executionId"] for row in full.ok(*words, "--json").rows]
        assert [line.split()[0] for line in plain(full.screen(*words, columns=200)[1])[1:]] == ids
        shown = [line.split()[0] for line in plain(full.screen(*words)[1])[1:]]
        assert shown == [f"…{id[-8:]}" for id in ids]
        assert full.ok("show", shown[0], "--json").rows["executionId"] == ids[0]


def test_a_narrow_terminal_keeps_the_most_useful_columns(full: Shell) -> None:
    heading, *rows = plain(full.screen("executions", "--status", "failed")[1])
    assert heading.split() == ["ID", "STATUS", "JOB", "CREATED", "REASON"]
    assert all(re.search(r"  (Wide|ValueError): \S.*…$", row) for row in rows), "the error, not the reason"
    heading = plain(full.screen("executions", columns=200)[1])[0]
    assert heading.split() == ["ID", "STATUS", "JOB", "QUEUE", "ATTEMPTS", "CREATED", "DUE", "TOOK", "REASON"]


def test_a_narrow_terminal_shows_the_whole_parameters_of_jobs(shell: Shell, seed: Seed) -> None:
    parameters = {name: {"type": "str", "required": True} for name in ("order_id", "email", "language")}
    seed.define("shop", Definition(name="send_receipt", parameters=parameters, description=ERROR))
    lines = plain(shell.screen("jobs")[1])
    assert lines[0].split()[:2] == ["APP", "JOB"]
    assert "DESCRIPTION" not in lines[0]
    assert any("send_receipt(email: str, language: str, order_id: str)" in line for line in lines), lines
    seed.define("shop", Definition(name="send_receipts_of_all_orders_again", parameters=parameters))
    assert plain(shell.screen("jobs", columns=80)[1])[0].split() == ["JOB"], "all of one app"


def test_colour_is_for_terminals_that_want_it(full: Shell) -> None:
    assert "\x1b[" not in full.screen("executions")[1]  # NO_COLOR is set.
    del full.env["NO_COLOR"]
    assert "\x1b[31mfailed\x1b[0m" in full.screen("executions")[1]
    assert "\x1b[" not in full.ok("executions").out
