"""`rota cancel`, `rota run-now`, `rota replay` and `rota dead`: acting on executions."""

from __future__ import annotations

import os
import pwd
from typing import Any

import pytest

from rota.cli.database import Database
from rota.domain.job import Queue
from rota.ops import define
from tests.cli.shell import Seed, Shell


def dead(shell: Shell, *words: str) -> list[str]:
    return [row["executionId"] for row in shell.ok("dead", *words, "--json").rows]


def row(shell: Shell, id: str) -> Any:
    return shell.ok("show", id.strip(), "--json").rows


def test_the_audit_names_the_user_by_the_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME", "SUDO_USER"):
        monkeypatch.setenv(name, "another-user")
    assert Database().actor == f"cli:{pwd.getpwuid(os.geteuid()).pw_name}"
    nameless = next(uid for uid in range(50_000, 60_000) if not is_known(uid))
    monkeypatch.setattr(os, "geteuid", lambda: nameless)
    assert Database().actor == f"cli:uid:{nameless}"


def is_known(uid: int) -> bool:
    return any(entry.pw_uid == uid for entry in pwd.getpwall())


def test_cancel_ends_what_waits_and_asks_what_runs(shell: Shell, seed: Seed) -> None:
    running, waiting = seed.enqueue(count=2)
    seed.claim(seed.join(), 1)
    answer = shell.ok("cancel", running, waiting, waiting)
    assert answer.out == f"{running}  running\n{waiting}  cancelled\n"
    assert f"{running} was asked to stop" in answer.err
    assert shell.ok("cancel", waiting, "--json").rows == [{"executionId": waiting, "status": "cancelled"}]


def test_cancel_tells_of_what_had_ended(shell: Shell, seed: Seed) -> None:
    (failed,), (waiting,) = seed.fail(), seed.enqueue()
    answer = shell("cancel", failed, waiting)
    assert answer.code == 1
    assert f"{failed} had already ended: failed" in answer.err
    assert row(shell, waiting)["status"] == "cancelled"


def test_an_unknown_id_stops_the_command_before_anything_is_done(shell: Shell, seed: Seed) -> None:
    (waiting,) = seed.enqueue()
    assert "there is no execution ffff" in shell.refused("cancel", waiting, "ffff")
    assert row(shell, waiting)["status"] == "queued"


def test_replay_runs_what_ended_again_as_a_new_execution(shell: Shell, seed: Seed) -> None:
    (failed,), (waiting,) = seed.fail(), seed.enqueue()
    assert "is queued and has not ended" in shell.refused("replay", failed, waiting)
    new = shell.ok("replay", failed).out
    assert row(shell, new)["replayOf"] == failed
    assert row(shell, new)["status"] == "queued"
    assert dead(shell) == []
    shell.ok("cancel", waiting)
    (made,) = shell.ok("replay", waiting, "--json").rows
    assert made["replayOf"] == waiting


def test_run_now_queues_what_is_to_start_later(shell: Shell, seed: Seed) -> None:
    (later,), (failed,) = seed.enqueue(delay_s=3600), seed.fail()
    assert shell.ok("run-now", later[-8:]).out == f"{later}  queued\n"
    assert row(shell, later)["status"] == "queued"
    answer = shell("run-now", failed, later, "--json")
    assert answer.code == 1
    assert [one["status"] for one in answer.rows] == ["failed", "queued"]
    assert f"{failed} was not started: it has ended (failed); `rota replay` runs it again" in answer.err
    seed.claim(seed.join())
    assert f"{later} is running already" in shell.ok("run-now", later).err


def test_dead_letters_are_filtered(shell: Shell, seed: Seed) -> None:
    (first,) = seed.fail(message="no such host")
    (second,) = seed.fail(message="timed out", job="send")
    assert dead(shell) == [second, first]
    assert dead(shell, "--job", "fail") == [first]
    assert dead(shell, "--app", "shop") == [second, first]
    assert dead(shell, "--app", "other") == []
    assert dead(shell, "--error", "TIMED") == [second]
    assert dead(shell, "--reason", "error", "--queue", "mail", "--since", "1h", "--limit", "1") == [second]
    assert dead(shell, "--before", second) == [first]
    assert dead(shell, "--reason", "timeout") == []
    assert "ValueError: timed out" in shell.ok("dead").out


def test_replaying_by_id(shell: Shell, seed: Seed) -> None:
    first, second = seed.fail(2)
    new = shell.ok("dead", "replay", first).out
    assert row(shell, new)["replayOf"] == first
    for verb in ("replay", "discard"):
        assert f"{first} is not a dead letter (any more)" in shell.refused("dead", verb, first)
    assert dead(shell) == [second]


def test_acting_on_all_wants_to_be_sure(shell: Shell, seed: Seed) -> None:
    seed.fail(3)
    assert "say which" in shell.refused("dead", "replay", "--job", "fail")
    assert "not both" in shell.refused("dead", "replay", "--all", "0197")
    assert "replay 3 dead letters? There is no terminal to ask at: confirm with --yes" in shell.refused(
        "dead", "replay", "--all"
    )
    assert len(dead(shell)) == 3


def test_a_filter_in_the_wrong_place_is_refused_and_not_ignored(shell: Shell, seed: Seed) -> None:
    seed.fail(2)
    line = shell.refused("dead", "--job", "send", "replay", "--all", "--yes")
    assert "--job is an option of the list: give the options of `rota dead replay` after it" in line
    assert len(dead(shell)) == 2


def test_replaying_and_discarding_many(shell: Shell, seed: Seed) -> None:
    failed = seed.fail(1203)
    (other,) = seed.fail(job="send")
    answer = shell.ok("dead", "replay", "--all", "--job", "fail", "--yes", "--json")
    assert [made["replayOf"] for made in answer.rows] == failed
    assert answer.err == "replayed 1,203 dead letters\n"
    assert dead(shell) == [other]
    assert shell.ok("dead", "discard", "--all", "--yes").err == "discarded 1 dead letter\n"
    assert dead(shell) == []
    assert row(shell, other)["status"] == "failed"


def test_a_full_queue_says_how_far_it_came(shell: Shell, seed: Seed) -> None:
    seed.fail(700)
    seed.store.transact(define.register, "default", "shop", (), [Queue(name="mail", max_depth=600)])
    line = shell.refused("dead", "replay", "--all", "--yes", code=1)
    assert "queue 'mail' is full" in line
    assert "(500 of 700 were replayed before)" in line


def test_at_a_terminal_it_asks_and_shows_progress(shell: Shell, seed: Seed) -> None:
    seed.fail(3)
    code, shown = shell.screen("dead", "discard", "--all", typed=b"n\n")
    assert code == 1
    assert "discard 3 dead letters? [y/N]" in shown
    assert "nothing was done" in shown
    assert len(dead(shell)) == 3
    code, shown = shell.screen("dead", "discard", "--all", typed=b"y\n")
    assert code == 0
    assert "discarding" in shown
    assert dead(shell) == []
