"""Running `tests.store.programs` in processes of their own, and looking into their database."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import PATIENCE_S

REPOSITORY = Path(__file__).parents[2]


@contextmanager
def program(name: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A running program; it is killed at the end if it has not ended by itself."""
    command = [sys.executable, "-m", "tests.store.programs", name, *(str(argument) for argument in arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=REPOSITORY, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def finish(process: subprocess.Popen[str], code: int = 0) -> list[str]:
    """The lines that it printed, once it has ended."""
    out, err = process.communicate("\n", timeout=2 * PATIENCE_S)
    assert process.returncode == code, err
    return out.splitlines()


def run(name: str, *arguments: object, code: int = 0) -> list[str]:
    with program(name, *arguments) as process:
        return finish(process, code)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def start(process: subprocess.Popen[str]) -> None:
    """Continues a program that waits for its input."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@contextmanager
def foreign(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of another program, which does not take the turn lock."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        yield connection
    finally:
        connection.close()


def ids(path: Path) -> set[str]:
    """Every execution in a file that is not damaged, also those that the next transaction places."""
    with foreign(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {row[0] for row in connection.execute("SELECT id FROM execution UNION ALL SELECT id FROM arrival")}
