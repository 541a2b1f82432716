"""`rota backfill`: the ticks of a past time, once each."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest

from rota import App
from rota.domain.outcome import Succeeded
from rota.domain.schedule import Spec
from rota.domain.status import TERMINAL, Status
from rota.domain.trigger import After, Cron, Every, Trigger
from rota.ops import finish, schedule
from rota.store.reader import ExecutionRow, Filter
from rota.views import execution as views
from tests.cli.shell import HANG_S, Seed, Shell
from tests.support.databases import fresh_database
from tests.support.waiting import eventually
from tests.support.world import World
from tests.workflow.stage import Stage

SECOND = 1_000_000
HOUR = 3600 * SECOND
JANUARY = ["--from", "2026-01-01T00:00Z", "--to", "2026-02-01T00:00Z"]


def put(seed: Seed, name: str = "report", trigger: Trigger | None = None, app: str = "shop", **options: Any) -> None:
    spec = Spec(job="send", trigger=trigger or Cron("0 9 * * *"), arguments='{"to":"a"}', queue="mail", **options)
    seed.store.transact(schedule.put, "default", app, name, spec, "test")


def started(shell: Shell, name: str = "report") -> dict[str, str]:
    """The execution of each tick."""
    rows = shell.ok("schedules", "ticks", name, "--limit", "10000", "--json").rows
    return {row["at"]: row["executionId"] for row in rows if row["executionId"]}


def executions(shell: Shell) -> list[Any]:
    return list(shell.ok("executions", "--limit", "10000", "--json").rows)


def queued(seed: Seed) -> list[ExecutionRow]:
    return seed.store.read(views.rows, "default", Filter(status=Status.QUEUED)).items


def test_every_tick_of_the_time_becomes_an_execution(shell: Shell, seed: Seed) -> None:
    put(seed)
    answer = shell.ok("backfill", "send", *JANUARY)
    assert (answer.out, answer.err) == ("", "started 31 ticks of report\n")
    ticks = started(shell)
    assert sorted(ticks) == [f"2026-01-{day:02}T09:00:00Z" for day in range(1, 32)]
    rows = executions(shell)
    assert {row["executionId"] for row in rows} == set(ticks.values())
    assert {(row["job"], row["queue"], row["arguments"]["to"]) for row in rows} == {("send", "mail", "a")}
    ledger = shell.ok("schedules", "ticks", "report", "--json").rows
    assert {row["outcome"] for row in ledger} == {"backfilled"}
    told = shell.ok("schedules", "ticks", "report", "--from", "2026-01-01T00:00Z").err
    assert "31 ticks: 31 started" in told
    assert ": before that it has no ticks but backfilled ones" in told


def test_asked_again_nothing_runs_twice(shell: Shell, seed: Seed) -> None:
    put(seed)
    shell.ok("backfill", "send", "--from", "2026-01-10T00:00Z", "--to", "2026-01-12T00:00Z")
    before = started(shell)
    assert len(before) == 2
    assert shell.ok("backfill", "send", *JANUARY).err == "started 29 ticks of report; 2 had run before\n"
    assert before.items() <= started(shell).items()
    assert shell.ok("backfill", "send", *JANUARY).err == "started 0 ticks of report; 31 had run before\n"
    assert len(executions(shell)) == 31


def test_a_day_is_meant_in_the_zone_of_the_schedule_and_the_last_one_is_included(shell: Shell, seed: Seed) -> None:
    put(seed, trigger=Cron("30 0 * * *", "Asia/Tokyo"), tz="Asia/Tokyo")
    shell.ok("backfill", "send", "--from", "2026-01-10", "--to", "2026-01-11")
    assert sorted(started(shell)) == ["2026-01-09T15:30:00Z", "2026-01-10T15:30:00Z"]
    assert "is not a time" in shell.refused("backfill", "send", "--from", "2026-02-30")


def test_both_ends_of_the_time_belong_to_it(shell: Shell, seed: Seed) -> None:
    put(seed)
    shell.ok("backfill", "send", "--from", "2026-01-10T09:00Z", "--to", "2026-01-11T09:00Z")
    assert len(started(shell)) == 2
    shell.ok("backfill", "send", "--from", "2026-01-12T09:00:01Z", "--to", "2026-01-13T08:59:59Z")
    assert len(started(shell)) == 2


def test_two_at_the_same_time_start_each_tick_once(shell: Shell, seed: Seed) -> None:
    put(seed, trigger=Every(HOUR))
    both = [shell.start("backfill", "send", *JANUARY) for _ in range(2)]
    assert [process.wait(HANG_S) for process in both] == [0, 0]
    for process in both:
        process.communicate()
    assert len(started(shell)) == len(executions(shell)) == 31 * 24 + 1


def test_a_dry_run_counts_and_starts_nothing(shell: Shell, seed: Seed) -> None:
    put(seed)
    words = "31 ticks of report in that time, of which"
    assert shell.ok("backfill", "send", *JANUARY, "--dry-run").err == f"{words} 0 have run\n"
    assert executions(shell) == []
    shell.ok("backfill", "send", "--from", "2026-01-10T00:00Z", "--to", "2026-01-12T00:00Z")
    assert shell.ok("backfill", "send", *JANUARY, "--dry-run").err == f"{words} 2 have run\n"


def test_too_many_are_refused_before_anything_starts(shell: Shell, seed: Seed) -> None:
    put(seed, trigger=Cron("* * * * *"))
    line = shell.refused("backfill", "send", *JANUARY)
    assert line.startswith("--from, --to: there are 44,641 ticks in that time")
    assert "ticks in that time" in shell.refused("backfill", "send", "--from", "1970-01-01T00:00Z")
    assert "there are 61 ticks" in shell.refused(
        *["backfill", "send", "--from", "2026-01-01T00:00Z", "--to", "2026-01-01T01:00Z", "--most", "60"]
    )
    assert executions(shell) == []


def test_excluded_days_are_left_out_and_said(shell: Shell, seed: Seed) -> None:
    put(seed, excluded=("2026-01-01", "2026-01-06"))
    assert (
        shell.ok("backfill", "send", *JANUARY).err == "started 29 ticks of report; 2 left out, as the schedule says\n"
    )
    assert "2026-01-06T09:00:00.000000Z" not in started(shell)


def test_what_is_not_decided_yet_is_left_to_the_worker(shell: Shell, seed: Seed) -> None:
    put(seed, trigger=Every(SECOND))
    now = datetime.now(UTC)
    shell.ok("schedules", "pause", "report")
    shell.ok("backfill", "send", "--from", "5m")
    paused_at = shell.ok("schedules", "--json").rows[0]["paused"]["at"]
    ticks = started(shell)
    assert ticks
    assert max(map(datetime.fromisoformat, ticks)) <= datetime.fromisoformat(paused_at)
    assert min(ticks) < now.isoformat()


def test_a_job_with_several_schedules_wants_to_know_which(shell: Shell, seed: Seed) -> None:
    put(seed)
    put(seed, "noon", Cron("0 12 * * *"))
    line = shell.refused("backfill", "send", *JANUARY)
    assert line == "'send' may be any of shop.noon, shop.report: say which with --schedule"
    assert "has no schedule 'nope', but noon, report" in shell.refused(
        "backfill", "send", *JANUARY, "--schedule", "nope"
    )
    shell.ok("backfill", "send", *JANUARY, "--schedule", "noon")
    shell.ok("backfill", "noon", *JANUARY)
    assert (len(started(shell, "noon")), started(shell)) == (31, {})
    put(seed, "noon", Cron("0 12 * * *"), app="other")
    assert "say which with --app" in shell.refused("backfill", "noon", *JANUARY)
    assert "app 'other' has no job 'send'" in shell.refused("backfill", "noon", *JANUARY, "--app", "other")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "missing argument 'JOB'"),
        (["send"], "missing option '--from'"),
        (["nope", "--from", "1d"], "there is no schedule of a job 'nope'; `rota schedules` lists them"),
        (["send", "--from", "soon"], "'--from': 'soon' is not a time"),
        (["send", "--from", "1d", "--to", "2026-01-01T00:00"], "no time zone"),
        (["send", "--from", "1d", "--to", "2d"], "--to: comes before --from"),
        (["send", "--from", "2999-01-01T00:00Z"], "--from: is not in the past"),
        (["send", "--from", "0001-01-01T00:00Z"], "'--from': must be between the years 1970 and 8999, not 1"),
        (["send", "--from", "1d", "--to", "9999-01-01T00:00Z"], "'--to': must be between the years 1970 and 8999"),
        (["send", "--from", "1d", "--most", "0"], "--most"),
        (["wait", "--from", "1d"], "schedule 'wait' has a fixed delay"),
    ],
)
def test_bad_input_is_one_line(shell: Shell, seed: Seed, words: list[str], says: str) -> None:
    put(seed, "wait", After(SECOND))
    assert says in shell.refused("backfill", *words)


def test_a_terminal_sees_how_far_it_is(shell: Shell, seed: Seed) -> None:
    put(seed, trigger=Every(HOUR))
    code, shown = shell.screen("backfill", "send", *JANUARY)
    assert code == 0
    assert "backfilling report" in shown
    assert "%" in shown
    assert "started 745 ticks of report" in shown


def test_it_is_the_same_on_postgresql(shell: Shell) -> None:
    shell.env["ROTA_URL"] = url = fresh_database()
    app = App("shop", url=url)
    try:

        @app.job
        def send() -> None: ...

        app.schedule(send, name="report", every="1h")
        assert shell.ok("backfill", "send", *JANUARY).err == "started 745 ticks of report\n"
        assert shell.ok("backfill", "send", *JANUARY).err == "started 0 ticks of report; 745 had run before\n"
        assert len(started(shell)) == len(executions(shell)) == 745
    finally:
        app.close()


def test_at_once_waits_for_the_end_of_earlier_ticks(shell: Shell, seed: Seed) -> None:
    put(seed)
    process = shell.start("backfill", "send", *JANUARY, "--at-once", "4")
    most = ended = 0
    while ended < 31:
        eventually(lambda: queued(seed) != [])
        most = max(most, len(queued(seed)))
        before = seed.join()
        held = seed.claim(before)
        seed.store.transact(finish.finish, [finish.Finished(id, fence, Succeeded("1")) for id, fence in held])
        ended += len(held)
    _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (0, "started 31 ticks of report\n")
    assert 1 <= most <= 4


def test_at_once_counts_what_an_earlier_call_started(shell: Shell, seed: Seed) -> None:
    put(seed)
    shell.ok("backfill", "send", "--from", "2026-01-01T00:00Z", "--to", "2026-01-04T00:00Z")
    process = shell.start("backfill", "send", *JANUARY, "--at-once", "3")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    assert len(executions(shell)) == 3
    process.kill()
    process.communicate()


def test_at_once_counts_open_runs_of_a_workflow(shell: Shell, seed: Seed) -> None:
    """A run counts until its last step has ended, not until a worker has opened it."""
    stage = Stage(World(seed.store))
    stage.workflow("main", {"id": "a", "job": "echo"}, {"id": "b", "job": "echo", "after": ["a"]})
    spec = Spec(job="main", trigger=Cron("0 9 * * *"))
    seed.store.transact(schedule.put, "default", "shop", "nightly", spec, "test")
    process = shell.start(
        "backfill", "main", "--from", "2026-01-01T00:00Z", "--to", "2026-01-07T00:00Z", "--at-once", "2"
    )
    most = 0
    while process.poll() is None:
        most = max(most, sum(not is_terminal(row["status"]) for row in stage.executions("main")))
        stage.finish(*stage.take(1))
    _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (0, "started 6 ticks of nightly\n")
    stage.work()
    assert (most, stage.statuses("main")) == (2, {"success": 6})


def is_terminal(status: str) -> bool:
    return Status(status) in TERMINAL
