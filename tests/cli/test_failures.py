"""Bad input: one line that says what and how to fix it, and nothing left behind."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from rota.store import migrate
from tests.cli.shell import HANG_S, Seed, Shell


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["frobnicate"], "no such command 'frobnicate'; see `rota --help`"),
        (["executons"], "executions"),
        (["executions", "--nope"], "no such option '--nope'"),
        (["executions", "--status", "great"], "'great' is not one of"),
        (["executions", "--limit", "0"], "--limit"),
        (["executions", "--since", "yesterday"], "'yesterday' is not a time"),
        (["executions", "--since", "2030-01-31T09:00"], "no time zone"),
        (["executions", "--status", "success", "--error", "x"], "--error finds failed executions"),
        (["show"], "missing argument 'ID'; see `rota show --help`"),
        (["enqueue", "send", "--delay", "soon"], "--delay"),
        (["enqueue", "send", "--priority", "urgent"], "high, normal, low or a number"),
        (["enqueue", "send", "--delay", "1s", "--at", "2030-01-31T09:00Z"], "--delay or --at"),
        (["enqueue", "send", "--unique-for", "never"], "unique scope"),
        (["enqueue", "send", "--on-conflict", "shout"], "on_conflict must be one of"),
        (["enqueue", "send", "--queue", "no good"], "a queue's name"),
        (["--namespace", "no good", "executions"], "namespace"),
        (["--url", "mysql://x", "executions"], "no database for 'mysql://x'"),
        (
            ["--url", "https://a.example", "executions"],
            "https://a.example is a server of Rota, and this needs the data",
        ),
        (["--url", "http://ann:secret@a", "worker", "shop:app"], "is a server of Rota, and this needs the database"),
        (["--url", "sqlite://:memory:", "executions"], "in memory"),
        (["--url", "sqlite:///no/such/folder/x.db", "migrate"], "does not exist: create it"),
        (["worker", "nothing_here:app"], "there is no module 'nothing_here'"),
        (["worker", "not an app"], "MODULE:APP"),
        (["worker", "shop:app", "--queues", "a,,b"], "--queues"),
        (["worker", "shop:app", "--concurrency", "0"], "concurrency must be between"),
        (["executions", "--job", "\udcff"], "not valid UTF-8"),
    ],
)
def test_bad_input_is_one_line(shell: Shell, words: list[str], says: str) -> None:
    assert says in shell.refused(*words)


@pytest.mark.parametrize("words", [["executions"], ["dead"], ["queues"], ["show", "0197"], ["cancel", "0197"]])
def test_looking_where_no_database_is_creates_none(shell: Shell, words: list[str]) -> None:
    line = shell.refused(*words)
    assert line == (
        f"there is no database at {shell.folder / 'rota.db'} yet: start `rota dev MODULE:APP` or set ROTA_URL"
    )
    assert [path.name for path in shell.folder.iterdir()] == ["shop.py"]


def test_a_file_that_is_no_database_is_refused(shell: Shell) -> None:
    (shell.folder / "rota.db").write_text("Not a database, but long enough to look like a page of one. " * 40)
    assert "is not a SQLite database" in shell.refused("executions")
    (shell.folder / "folder.db").mkdir()
    assert "cannot be read or written" in shell.refused("--url", "sqlite:///folder.db", "executions")


def test_a_database_that_is_behind_is_not_migrated_by_a_look(shell: Shell) -> None:
    path = shell.folder / "rota.db"
    sqlite3.connect(path).close()
    path.touch()
    assert "run `rota migrate`" in shell.refused("executions")
    assert path.stat().st_size == 0
    shell.ok("migrate")
    assert shell.ok("executions").err == "no executions match\n"


def test_a_database_of_a_newer_version_is_refused(shell: Shell, seed: Seed) -> None:
    number = migrate.known("sqlite")[-1].number + 1
    connection = sqlite3.connect(seed.path)
    connection.execute("INSERT INTO migration VALUES (?, 'later', 'x', 0)", (number,))
    connection.commit()
    connection.close()
    assert "upgrade Rota" in shell.refused("executions")
    assert "upgrade Rota" in shell.refused("migrate")


def test_settings_are_refused_by_name(shell: Shell) -> None:
    assert "lease_s" in shell.refused("executions", env={"ROTA_LEASE_S": "soon"})
    (shell.folder / "rota.toml").write_text("poll_s = [")
    assert "rota.toml is not valid TOML" in shell.refused("executions")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import nothing_here", "No module named 'nothing_here' (broken.py, line 1)"),
        ("x = 1\nraise RuntimeError('two\\nlines')", "RuntimeError: two lines (broken.py, line 2)"),
        ("def f(:", "SyntaxError"),
        ("import sys; sys.exit(3)", "it ends the program"),
        ("x = 1", "it has no rota.App at all"),
        ("from rota import App\nshop = App('shop')", "it has shop"),
        ("from rota import App\napp = App('no good')", "an app's name"),
        ("from rota import App\napp = App('no good')", "(broken.py, line 2)"),
    ],
)
def test_an_app_that_cannot_be_loaded_says_where(shell: Shell, source: str, says: str) -> None:
    (shell.folder / "broken.py").write_text(source)
    assert says in shell.refused("enqueue", "--load", "broken:app", "send")


def test_a_worker_whose_app_cannot_be_loaded_says_why(shell: Shell) -> None:
    (shell.folder / "broken.py").write_text("x = 1 / 0")
    assert "ZeroDivisionError: division by zero (broken.py, line 1)" in shell.refused("worker", "broken:app")
    other = "from rota import App\napp = App('shop', url='sqlite:///other.db')"
    (shell.folder / "other.py").write_text(other)
    assert "url='sqlite:///other.db' in its code" in shell.refused("--url", "sqlite:///rota.db", "worker", "other:app")


def test_interrupted_is_130_and_quiet(shell: Shell, seed: Seed) -> None:
    process = shell.start("enqueue", "send", "to=a", "--wait")
    assert process.stderr is not None
    assert "no live worker" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, out, err) == (130, "", "")


def test_a_closed_pipe_is_quiet(shell: Shell, seed: Seed) -> None:
    seed.enqueue(count=2000)
    command = [sys.executable, "-m", "rota", "executions", "--limit", "2000"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=shell.folder, env=shell.env, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"ID ")
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(HANG_S) == 141


def test_read_commands_leave_the_database_as_it_was(shell: Shell, seed: Seed) -> None:
    (id,) = seed.enqueue()
    seed.store.close()
    before = Path(seed.path).read_bytes()
    for words in (["executions"], ["show", id], ["queues"], ["workers"], ["jobs"], ["dead"]):
        shell.ok(*words)
    assert Path(seed.path).read_bytes() == before


def test_a_worker_whose_app_ends_the_process_says_so(shell: Shell) -> None:
    (shell.folder / "suicidal.py").write_text("import os\nos._exit(9)\n")
    ran = shell("worker", "suicidal:app")
    assert (ran.code, ran.err) == (2, "rota: the worker process ended with exit code 9 while it imported the app\n")
