"""`rota schedules`: the list, pausing and removing, the ledger, and what is odd."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import examples.schedules
from rota import App
from rota.domain.outcome import Error, Failed, Succeeded
from rota.domain.schedule import Overlap, Spec
from rota.domain.tick_policy import LedgerEntry, TickOutcome
from rota.domain.ticks import Gap
from rota.domain.trigger import After, At, Cron, Every, Trigger
from rota.ops import firing, schedule, upkeep
from rota.sdk.job import registered
from rota.testing import harness
from tests.cli.shell import Seed, Shell
from tests.support.databases import fresh_database
from tests.support.waiting import eventually

SECOND = 1_000_000
HOUR, DAY = 3600 * SECOND, 86_400 * SECOND
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
NIGHTLY = Cron("0 2 * * *", "Europe/Berlin")
EVIL = "\x1b[31mred\x1b[0m \u202ethgir\x07"


def put(seed: Seed, name: str = "backup", trigger: Trigger = NIGHTLY, app: str = "shop", **options: Any) -> None:
    spec = Spec(job=options.pop("job", "send"), trigger=trigger, arguments='{"to":"a"}', queue="mail", **options)
    seed.store.transact(schedule.put, "default", app, name, spec, "test")


def set_back(seed: Seed, name: str, microseconds: int) -> None:
    """As if no worker had checked a schedule for so long."""
    connection = sqlite3.connect(seed.path)
    this = "(SELECT id FROM schedule WHERE name = ?2)"
    moved = f"UPDATE hand SET cursor = cursor - ?1, next_at = cursor - ?1 + 1 WHERE schedule = {this}"
    assert connection.execute(moved, (microseconds, name)).rowcount == 1
    connection.execute(f"UPDATE schedule SET created_at = created_at - ?1 WHERE id = {this}", (microseconds, name))
    connection.commit()
    connection.close()


def fire(seed: Seed) -> None:
    seed.store.transact(firing.fire, upkeep.ALL_SHARDS, seed.ids.many)


def record(seed: Seed, name: str, *marks: LedgerEntry) -> None:
    known = seed.store.transact(schedule.known, "default", "shop", name)
    seed.store.transact(schedule.record, [(known.id, mark) for mark in marks])


def listed(shell: Shell, *words: str) -> dict[str, Any]:
    return {row["name"]: row for row in shell.ok("schedules", *words, "--json").rows}


def instant(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * SECOND)


# --- The list -------------------------------------------------------------------------------------


def test_schedules_are_listed_with_their_next_run_in_words(shell: Shell, seed: Seed) -> None:
    put(seed)
    put(seed, "late", Every(DAY), app="other")
    put(seed, "wait", After(600 * SECOND))
    put(seed, "once", At((instant("2999-01-01T00:00Z"),)))
    lines = shell.ok("schedules").out.splitlines()
    assert lines[0].split()[:6] == ["SCHEDULE", "JOB", "WHEN", "NEXT", "NEXT", "AT"]
    assert lines[0].endswith("LAST TICK  OUTCOME  LATE  LAST RUN")
    assert [line.split()[0] for line in lines[1:]] == ["other.late", "shop.backup", "shop.once", "shop.wait"]
    assert re.search(r"at 02:00\b.*, in Europe/Berlin  +in [\w ]+ +\d{4}-\d\d-\d\dT0[01]:00:00Z ", lines[2])
    assert "10 m after the end of the run before" in lines[4]
    assert list(listed(shell, "--app", "shop")) == ["backup", "once", "wait"]
    assert listed(shell, "--app", "nobody") == {}


def test_a_job_is_a_column_only_if_the_names_do_not_say_it(shell: Shell, seed: Seed) -> None:
    put(seed, "send")
    put(seed, "send:2", Every(HOUR))
    assert "JOB" not in shell.ok("schedules").out.splitlines()[0]


def test_json_has_iso_times_and_the_whole_spec(shell: Shell, seed: Seed) -> None:
    put(seed, "hourly", Every(HOUR, 60 * SECOND), start=instant("2026-01-01T00:00Z"), overlap=Overlap.QUEUE_ONE)
    row = listed(shell)["hourly"]
    for name in ("decidedUntil", "nextAt", "createdAt", "updatedAt"):
        assert ISO.fullmatch(row[name]), name
    assert (row["app"], row["job"], row["origin"], row["held"]) == ("shop", "send", "run_time", [])
    assert row["words"].startswith("every 1 h")
    assert (row["every"], row["phase"], row["cron"], row["after"], row["at"]) == (3600.0, 60.0, None, None, None)
    assert (row["arguments"], row["queue"], row["overlap"]) == ({"to": "a"}, "mail", "queue_one")
    assert (row["catchUp"], row["tz"], row["start"], row["end"]) == ("last", "UTC", "2026-01-01T00:00:00Z", None)


def test_the_last_tick_its_lateness_and_its_execution_are_shown(shell: Shell, seed: Seed) -> None:
    put(seed, "daily", Every(DAY))
    assert listed(shell)["daily"]["lastTick"] is None
    set_back(seed, "daily", DAY)
    late_s = (seed.clock.now() % DAY) / SECOND
    fire(seed)
    row = listed(shell)["daily"]
    assert row["lastTick"]["outcome"] in ("caught_up", "fired")
    assert late_s <= row["lastTick"]["lateBy"] < late_s + 30
    assert row["lastTick"]["status"] == "queued"
    seed.run(Failed(Error("ValueError", "boom")))
    assert listed(shell)["daily"]["lastTick"]["status"] == "failed"
    assert re.search(r"ago +(caught_up|fired) +\S.* +failed$", shell.ok("schedules").out.splitlines()[1])


def test_what_is_overdue_is_pointed_out(shell: Shell, seed: Seed) -> None:
    put(seed, "daily", Every(DAY))
    assert "overdue" not in shell.ok("schedules").err
    set_back(seed, "daily", 2 * DAY)
    assert shell.ok("schedules").err.startswith("1 schedule overdue: is a worker running?\n")


def test_an_app_without_a_live_worker_is_pointed_out(shell: Shell, seed: Seed) -> None:
    put(seed, "daily", Every(DAY))
    warning = "app shop has no live worker, so its schedules start nothing"
    assert warning in shell.ok("schedules").err
    seed.join()
    assert warning not in shell.ok("schedules").err


def test_a_long_list_says_that_there_is_more(shell: Shell, seed: Seed) -> None:
    seed.join()
    for number in range(3):
        put(seed, f"one{number}")
    answer = shell.ok("schedules", "--limit", "2", "--json")
    assert [row["name"] for row in answer.rows] == ["one0", "one1"]
    assert "or a higher --limit" in answer.err
    assert shell.ok("schedules", "--limit", "3").err == ""


def test_nothing_is_said_in_one_line_or_an_empty_array(shell: Shell) -> None:
    shell.ok("migrate")
    assert shell.ok("schedules", "--json").rows == []
    answer = shell.ok("schedules")
    assert (answer.out, answer.err.count("\n")) == ("", 1)
    assert shell.ok("schedules", "lint", "--json").rows == []


def test_looking_needs_a_database_and_changes_nothing(shell: Shell, seed: Seed) -> None:
    put(seed)
    seed.store.close()
    before = seed.path.read_bytes()
    for words in (["schedules"], ["schedules", "ticks", "backup"], ["schedules", "lint", "--json"]):
        shell(*words)
    assert seed.path.read_bytes() == before
    elsewhere = ["--url", "sqlite:///nothing.db"]
    for words in (["schedules"], ["schedules", "ticks", "backup"], ["schedules", "pause", "backup"]):
        assert "there is no database" in shell.refused(*elsewhere, *words)
    assert not (shell.folder / "nothing.db").exists()


def test_a_narrow_terminal_cuts_neither_times_nor_ids(shell: Shell, seed: Seed) -> None:
    put(seed, "daily", Every(DAY))
    set_back(seed, "daily", DAY)
    fire(seed)
    execution = listed(shell)["daily"]["lastTick"]["executionId"]
    _, shown = shell.screen("schedules", "ticks", "daily")
    assert execution in shown
    assert "00:00:00Z" in shown
    assert "shop.daily" in shell.screen("schedules")[1]


# --- Pausing and removing -------------------------------------------------------------------------


def test_pausing_and_resuming(shell: Shell, seed: Seed) -> None:
    put(seed)
    assert shell.ok("schedules", "pause", "backup", "--note", "disk is full").err == "schedule backup is paused\n"
    assert "was paused already" in shell.ok("schedules", "pause", "backup").err
    row = listed(shell)["backup"]
    assert (row["paused"]["note"], row["nextAt"]) == ("disk is full", None)
    assert row["paused"]["by"].startswith("cli")
    assert re.search(r"paused (just now|[^:]+ ago) by cli\S*: disk is full", shell.ok("schedules").out)
    assert "schedule backup resumed" in shell.ok("schedules", "resume", "shop.backup").err
    assert "was not paused" in shell.ok("schedules", "resume", "backup").err
    row = listed(shell)["backup"]
    assert row["paused"] is None
    assert ISO.fullmatch(row["nextAt"])


def test_ticks_that_a_pause_leaves_out_are_listed_before_and_after(shell: Shell, seed: Seed) -> None:
    put(seed, "often", Every(SECOND))
    shell.ok("schedules", "pause", "often")
    eventually(lambda: "which leaves out" in shell.ok("schedules", "ticks", "often").err)
    shell.ok("schedules", "resume", "often")
    rows = shell.ok("schedules", "ticks", "often", "--missed", "--json").rows
    (paused,) = [row for row in rows if row["outcome"] == "paused"]
    assert paused["count"] >= 1


def test_hostile_notes_are_shown_harmlessly(shell: Shell, seed: Seed) -> None:
    put(seed)
    shell.ok("schedules", "pause", "backup", "--note", EVIL)
    for words in (["schedules"], ["schedules", "--json"]):
        out = shell.ok(*words).out
        assert "thgir" in out
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", out)


def test_removing_keeps_the_ledger(shell: Shell, seed: Seed) -> None:
    put(seed, "daily", Every(DAY))
    set_back(seed, "daily", DAY)
    fire(seed)
    before = shell.ok("schedules", "ticks", "daily", "--json").rows
    assert len(before) == 1
    assert shell.ok("schedules", "remove", "daily").err == "schedule daily is removed\n"
    assert listed(shell) == {}
    answer = shell.ok("schedules", "ticks", "daily", "--json")
    assert answer.rows == before
    assert answer.err.startswith("schedule daily was removed\n")
    assert "there is no schedule 'daily'" in shell.refused("schedules", "remove", "daily")


def test_removing_what_code_declares_says_that_it_comes_back(shell: Shell, seed: Seed) -> None:
    wanted = [("send", Spec(job="send", trigger=NIGHTLY))]
    seed.store.transact(schedule.declare, "default", "shop", wanted)
    assert "the next deploy adds it again" in shell.ok("schedules", "remove", "send").err


def test_whose_ledger_it_is_is_said_if_the_job_was_named(shell: Shell, seed: Seed) -> None:
    put(seed)
    assert "send is a job; this is its schedule backup\n" in shell.ok("schedules", "ticks", "send").err
    for name in ("backup", "shop.backup"):
        assert "is a job" not in shell.ok("schedules", "ticks", name).err


def test_a_name_that_several_have_is_asked_for(shell: Shell, seed: Seed) -> None:
    put(seed)
    put(seed, app="other")
    put(seed, "weekly", Cron("0 0 * * 0"), app="third")
    assert "'backup' may be any of other.backup, shop.backup: say which with --app" in shell.refused(
        "schedules", "pause", "backup"
    )
    assert "may be any of" in shell.refused("schedules", "ticks", "send")
    shell.ok("schedules", "pause", "backup", "--app", "other")
    shell.ok("schedules", "pause", "third.weekly")
    paused = {row["app"] for row in shell.ok("schedules", "--json").rows if row["paused"]}
    assert paused == {"other", "third"}


# --- The ledger -----------------------------------------------------------------------------------


def a_quarter(seed: Seed) -> None:
    """92 nights of a backup: one was missed, two came in a pause, one failed."""
    put(seed)
    known = seed.store.transact(schedule.known, "default", "shop", "backup")
    first = datetime(2026, 7, 1, tzinfo=UTC)
    ticks = [round((first + timedelta(days=day)).timestamp() * SECOND) for day in range(92)]
    ids = seed.enqueue(count=88)
    seed.run(Succeeded())
    ids += seed.fail()
    rows = [(known.id, at, id, "fired") for at, id in zip([*ticks[:40], *ticks[43:]], ids, strict=True)]
    seed.store.transact(lambda tx: tx.run("add_ticks", rows=rows))
    record(
        seed,
        "backup",
        LedgerEntry(ticks[40], ticks[40], 1, TickOutcome.MISSED),
        LedgerEntry(ticks[41], ticks[42], 2, TickOutcome.PAUSED),
    )


QUARTER = ["--from", "2026-07-01T00:00Z", "--to", "2026-10-01T00:00Z"]


def test_a_quarter_is_proved_from_the_ledger(shell: Shell, seed: Seed) -> None:
    a_quarter(seed)
    answer = shell.ok("schedules", "ticks", "backup", *QUARTER)
    assert len(answer.out.splitlines()) == 51
    assert "or a higher --limit" in answer.err
    assert "92 ticks: 89 started (88 success, 1 failed), 3 did not (2 paused, 1 missed)" in answer.err
    rows = shell.ok("schedules", "ticks", "backup", *QUARTER, "--limit", "1000", "--json").rows
    assert sum(row["count"] for row in rows) == 92
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
    assert {row["status"] for row in rows if row["executionId"]} == {"success", "failed"}


def test_what_was_missed_is_listed_with_the_reason(shell: Shell, seed: Seed) -> None:
    a_quarter(seed)
    answer = shell.ok("schedules", "ticks", "backup", *QUARTER, "--missed")
    assert [line.split() for line in answer.out.splitlines()] == [
        ["TICK", "TICKS", "OUTCOME", "STATUS", "ID"],
        ["2026-08-11T00:00:00Z", "2", "until", "2026-08-12T00:00:00Z", "paused"],
        ["2026-08-10T00:00:00Z", "missed"],
    ]
    rows = shell.ok("schedules", "ticks", "backup", *QUARTER, "--missed", "--json").rows
    assert [(row["count"], row["outcome"], row["executionId"]) for row in rows] == [
        (2, "paused", None),
        (1, "missed", None),
    ]
    july = ["--from", "2026-07-01T00:00Z", "--to", "2026-08-01T00:00Z"]
    answer = shell.ok("schedules", "ticks", "backup", *july, "--missed")
    assert answer.out == ""
    assert answer.err.startswith("none was missed\n32 ticks: 32 started (32 success), 0 did not\n")


def test_the_ledger_tells_what_it_cannot_know(shell: Shell, seed: Seed) -> None:
    put(seed, "daily", Every(DAY))
    set_back(seed, "daily", 3 * DAY)
    answer = shell.ok("schedules", "ticks", "daily", "--from", "30d", "--missed")
    assert answer.err.startswith("no ticks in that time\n3 ticks since ")
    assert "not decided yet: is a worker running?\n" in answer.err
    assert "schedule daily was made at" in answer.err
    fire(seed)
    assert "not decided yet" not in shell.ok("schedules", "ticks", "daily").err


def test_an_execution_that_has_not_ended_is_not_called_a_success(shell: Shell, seed: Seed) -> None:
    put(seed, "daily", Every(DAY))
    set_back(seed, "daily", DAY)
    fire(seed)
    assert "1 started (1 without a recorded end), 0 did not" in shell.ok("schedules", "ticks", "daily").err


# --- What is odd ----------------------------------------------------------------------------------


def findings(shell: Shell, kind: str) -> list[Any]:
    answer = shell("schedules", "lint", "--json")
    assert answer.code == (1 if answer.rows else 0)
    return [row for row in answer.rows if row["kind"] == kind]


def test_a_herd_is_found_unless_it_is_spread(shell: Shell, seed: Seed) -> None:
    for number in range(41):
        put(seed, f"one{number}", Cron("0 0 * * *"))
    (herd,) = findings(shell, "herd")
    assert herd["message"].startswith("41 schedules at 00:00 UTC")
    assert len(herd["schedules"]) == 41
    answer = shell("schedules", "lint")
    assert answer.code == 1
    assert "herd: 41 schedules at 00:00" in answer.out
    assert answer.err == "41 schedules, 1 finding\n"
    for number in range(41):
        put(seed, f"one{number}", Cron("H 0 * * *", seed=f"shop.one{number}"))
    assert findings(shell, "herd") == []


def test_a_time_that_does_not_exist_is_found(shell: Shell, seed: Seed) -> None:
    put(seed, "early", Cron("30 2 * * *", "Europe/Berlin", gap=Gap.SKIP))
    put(seed, "safe", Cron("30 4 * * *", "Europe/Berlin"))
    (found,) = findings(shell, "dst_gap")
    assert found["schedules"] == ["shop.early"]
    assert "30 2 * * * in Europe/Berlin" in found["message"]
    shell.ok("schedules", "pause", "early")
    assert shell.ok("schedules", "lint").err == "1 schedule, 0 findings\n"


def test_runs_that_take_longer_than_their_interval_are_found(shell: Shell, seed: Seed) -> None:
    put(seed, "often", Every(60 * SECOND))
    seed.enqueue()
    seed.run(Succeeded())
    assert findings(shell, "too_long") == []
    connection = sqlite3.connect(seed.path)
    connection.execute("UPDATE finished SET started_at = finished_at - ?", (90 * SECOND,))
    connection.commit()
    connection.close()
    (found,) = findings(shell, "too_long")
    assert found["schedules"] == ["shop.often"]
    assert "1 m 30 s" in found["message"]


# --- Bad input, a real worker, PostgreSQL ---------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["frobnicate"], "no such command 'frobnicate'"),
        (["--limit", "0"], "--limit"),
        (["pause"], "missing argument 'NAME'"),
        (["pause", "nope"], "there is no schedule 'nope'; `rota schedules` lists them"),
        (["resume", "shop.nope"], "there is no schedule 'shop.nope'"),
        (["remove", "backup", "--app", "other"], "there is no schedule 'backup'"),
        (["ticks", "nope"], "there is no schedule 'nope'"),
        (["ticks", "backup", "--from", "yesterday"], "'--from': 'yesterday' is not a time"),
        (["ticks", "backup", "--to", "2026-01-01T00:00"], "no time zone"),
        (["ticks", "backup", "--from", "1d", "--to", "2d"], "--to: comes before --from"),
        (["ticks", "backup", "--from", "2999-01-01T00:00Z"], "--from: is not in the past"),
        (["ticks", "backup", "--from", "0001-01-01T00:00Z"], "'--from': must be between the years 1970 and 8999"),
        (["ticks", "backup", "--to", "9999-12-31T00:00Z"], "'--to': must be between the years 1970 and 8999"),
        (["ticks", "backup", "--limit", "10001"], "--limit"),
        (["pause", "\x1b[2J"], "there is no schedule '\\x1b[2J'"),
    ],
)
def test_bad_input_is_one_line(shell: Shell, seed: Seed, words: list[str], says: str) -> None:
    put(seed)
    assert says in shell.refused("schedules", *words)


SCHEDULED = """
from rota import App
app = App("shop")
@app.job(every="1s")
def often() -> str:
    return "ok"
"""


def test_a_worker_fires_and_the_ledger_shows_it(shell: Shell, worker: Callable[..., None]) -> None:
    (shell.folder / "shop.py").write_text(SCHEDULED)
    worker()
    eventually(lambda: (shell.folder / "rota.db").exists() and shell("schedules").code == 0)
    eventually(lambda: "success" in shell("schedules", "ticks", "often").out)
    row = listed(shell)["often"]
    assert (row["origin"], row["lastTick"]["outcome"]) == ("code", "fired")
    assert 0 <= row["lastTick"]["lateBy"] < 30


def test_the_example_does_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for job in (examples.schedules.poll, examples.schedules.settle):
        # They wait on the machine's clock, which the harness does not move.
        monkeypatch.setattr(registered(job).function_executor.function, "__defaults__", (0.0,))
    tuesday_noon = datetime(2026, 12, 22, 12, tzinfo=UTC)
    with harness(examples.schedules.app, start=tuesday_noon) as running:
        running.skip("3d")  # No worker runs meanwhile, and Thursday is left out.
        running.run_until_idle()
        ledgers = {one.name: one.ticks() for one in examples.schedules.app.schedules()}
    assert set(ledgers) == set(examples.schedules.app.jobs)
    outcomes = [(tick.at, tick.outcome) for tick in ledgers["report"]]
    assert [at for at, _ in outcomes] == [datetime(2026, 12, day, 8, tzinfo=UTC) for day in (25, 24, 23)]
    assert [outcome for _, outcome in outcomes][1:] == ["excluded", "caught_up"]
    assert all(tick.execution_id for tick in ledgers["report"] if tick.outcome != "excluded")


def test_it_is_the_same_on_postgresql(shell: Shell) -> None:
    shell.env["ROTA_URL"] = url = fresh_database()
    january = ["--from", "2026-01-01T00:00Z", "--to", "2026-01-04T00:00Z"]
    app = App("shop", url=url)
    try:

        @app.job
        def send() -> None: ...

        app.schedule(send, name="backup", cron="0 2 * * *", tz="Europe/Berlin")
        shell.ok("backfill", "send", *january)
        shell.ok("schedules", "pause", "backup", "--note", "disk is full")
        assert listed(shell)["backup"]["paused"]["note"] == "disk is full"
        shell.ok("schedules", "resume", "backup")
        answer = shell.ok("schedules", "ticks", "shop.backup", *january)
        assert "3 ticks: 3 started (3 without a recorded end), 0 did not\n" in answer.err
        (gap,) = findings(shell, "dst_gap")
        assert gap["schedules"] == ["shop.backup"]
        shell.ok("schedules", "remove", "backup")
        assert len(shell.ok("schedules", "ticks", "backup", "--json").rows) == 3
    finally:
        app.close()


def test_an_execution_shows_the_tick_that_it_was_started_for(shell: Shell, seed: Seed) -> None:
    put(seed, "hourly", Every(HOUR))
    set_back(seed, "hourly", 2 * HOUR)
    fire(seed)
    tick = next(row for row in shell.ok("schedules", "ticks", "hourly", "--json").rows if row["executionId"])
    shown = shell.ok("show", tick["executionId"], "--json").rows
    assert (shown["schedule"], shown["tick"], shown["catchUp"]) == (
        "hourly",
        tick["at"],
        tick["outcome"] == "caught_up",
    )
    assert "hourly, tick 2" in shell.ok("show", tick["executionId"]).out
