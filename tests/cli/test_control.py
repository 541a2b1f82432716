"""`rota cancel`, `rota retry` and `rota dead`: acting on executions."""

from __future__ import annotations

import os
import pty
import pwd
import subprocess
import sys
from typing import Any

import pytest

from rota.cli.database import Database
from rota.domain.job import Queue
from rota.ops import define
from tests.cli.shell import HANG_S, Seed, Shell


def dead(shell: Shell, *words: str) -> list[str]:
    return [row["executionId"] for row in shell.ok("dead", "list", *words, "--json").rows]


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


def test_retry_runs_what_ended_again_as_a_new_execution(shell: Shell, seed: Seed) -> None:
    (failed,), (waiting,) = seed.fail(), seed.enqueue()
    assert "is queued and has not ended" in shell.refused("retry", failed, waiting)
    new = shell.ok("retry", failed).out
    assert row(shell, new)["replayOf"] == failed
    assert row(shell, new)["status"] == "queued"
    assert dead(shell) == []
    shell.ok("cancel", waiting)
    (made,) = shell.ok("retry", waiting, "--json").rows
    assert made["replayOf"] == waiting


def test_dead_letters_are_filtered(shell: Shell, seed: Seed) -> None:
    (first,) = seed.fail(message="no such host")
    (second,) = seed.fail(message="timed out", job="send")
    assert dead(shell) == [second, first]
    assert dead(shell, "--job", "fail") == [first]
    assert dead(shell, "--error", "TIMED") == [second]
    assert dead(shell, "--reason", "error", "--queue", "mail", "--since", "1h", "--limit", "1") == [second]
    assert dead(shell, "--before", second) == [first]
    assert dead(shell, "--reason", "timeout") == []
    assert "ValueError: timed out" in shell.ok("dead").out


def test_replaying_by_id(shell: Shell, seed: Seed) -> None:
    first, second = seed.fail(2)
    assert "ValueError: boom" in shell.ok("dead", "show", first).out
    new = shell.ok("dead", "replay", first).out
    assert row(shell, new)["replayOf"] == first
    for verb in ("show", "replay", "discard"):
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


def on_a_terminal(shell: Shell, words: list[str], answer: bytes) -> tuple[int, str]:
    """Runs a command whose stdin and stderr are a terminal, types an answer, and returns code and screen."""
    ours, theirs = pty.openpty()
    env = shell.env | {"TERM": "xterm"}
    command = [sys.executable, "-m", "rota", *words]
    process = subprocess.Popen(
        command, cwd=shell.folder, env=env, stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL
    )
    os.close(theirs)
    os.write(ours, answer)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:
        pass  # The other end is closed: the command has ended.
    os.close(ours)
    return process.wait(HANG_S), shown.decode()


def test_at_a_terminal_it_asks_and_shows_progress(shell: Shell, seed: Seed) -> None:
    seed.fail(3)
    code, shown = on_a_terminal(shell, ["dead", "discard", "--all"], b"n\n")
    assert code == 1
    assert "discard 3 dead letters? [y/N]" in shown
    assert "nothing was done" in shown
    assert len(dead(shell)) == 3
    code, shown = on_a_terminal(shell, ["dead", "discard", "--all"], b"y\n")
    assert code == 0
    assert "discarding" in shown
    assert dead(shell) == []
