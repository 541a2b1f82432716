"""Migrations: all or nothing, once, and never on a database that is not ours."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import pytest

from rota.domain.errors import StoreMismatch
from rota.store import migrate
from rota.store.sqlite.store import SqliteStore
from tests.store.running import finish, foreign, line, program, run

STATEMENTS = sum(len(migrate._split(migration.text)) for migration in migrate.known("sqlite"))


def tables(path: Path) -> set[str]:
    with foreign(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}


def applied(path: Path) -> list[tuple[int, str]]:
    with foreign(path) as connection:
        return connection.execute("SELECT number, checksum FROM migration").fetchall()


def test_a_fresh_file_gets_every_migration(path: Path) -> None:
    SqliteStore(f"sqlite:///{path}").close()
    known = migrate.known("sqlite")
    assert applied(path) == [(migration.number, migration.checksum) for migration in known]
    assert [migration.number for migration in known] == list(range(1, len(known) + 1))


def test_an_older_file_gets_only_the_migrations_that_it_lacks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteStore(f"sqlite:///{path}").close()
    known, before = migrate.known("sqlite"), applied(path)
    added = migrate.Migration(len(known) + 1, "added", "CREATE TABLE added (x);")
    monkeypatch.setattr(migrate, "known", lambda _: (*known, added))
    SqliteStore(f"sqlite:///{path}").close()
    assert applied(path) == [*before, (added.number, added.checksum)]
    assert "added" in tables(path)


def test_a_file_that_is_up_to_date_is_not_written(path: Path) -> None:
    SqliteStore(f"sqlite:///{path}").close()
    before = path.read_bytes()
    SqliteStore(f"sqlite:///{path}").close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("after", [0, 1, STATEMENTS // 2, STATEMENTS])
def test_a_migration_whose_process_is_killed_leaves_nothing(path: Path, after: int) -> None:
    run("migrate_and_die", path, after, code=-signal.SIGKILL)
    assert tables(path) == set()
    SqliteStore(f"sqlite:///{path}").close()
    assert len(applied(path)) == len(migrate.known("sqlite"))


def test_ten_processes_that_open_a_fresh_file_at_once_migrate_it_once(path: Path) -> None:
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(program("open_fresh", path)) for _ in range(10)]
        assert [line(process) for process in processes] == ["here"] * 10
        assert [finish(process) for process in processes] == [["opened"]] * 10
    assert len(applied(path)) == len(migrate.known("sqlite"))


def test_a_database_of_a_newer_version_is_refused(path: Path) -> None:
    SqliteStore(f"sqlite:///{path}").close()
    with foreign(path) as connection:
        connection.execute("INSERT INTO migration VALUES (9999, '9999_future', 'x', 0)")
    with pytest.raises(StoreMismatch, match="migration 9999, which this version of Rota does not know: upgrade Rota"):
        SqliteStore(f"sqlite:///{path}")


def test_a_database_with_another_history_is_refused(path: Path) -> None:
    SqliteStore(f"sqlite:///{path}").close()
    with foreign(path) as connection:
        connection.execute("UPDATE migration SET checksum = 'other' WHERE number = 1")
    with pytest.raises(StoreMismatch, match="was applied with other contents"):
        SqliteStore(f"sqlite:///{path}")


def test_a_database_of_another_program_is_left_as_it_is(path: Path) -> None:
    with foreign(path) as connection:
        connection.execute("CREATE TABLE execution (x)")
    with pytest.raises(Exception, match="execution"):
        SqliteStore(f"sqlite:///{path}")
    assert tables(path) == {"execution"}
