"""Migrations on PostgreSQL: once, all or nothing, and with the same result for old and new databases."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota.clock import SystemClock
from rota.domain.errors import StoreMismatch
from rota.store import migrate
from rota.store.postgres import migrate as postgres_migrate
from rota.store.postgres import partitions as postgres_partitions
from rota.store.postgres import url as postgres_url
from rota.store.postgres.link import Link
from rota.store.postgres.store import PostgresStore
from tests.support import postgres
from tests.support.waiting import PATIENCE_S, eventually

_OPEN = "import sys; from rota.store.postgres.store import PostgresStore; PostgresStore(sys.argv[1]).close()"


def test_ten_nodes_that_start_at_once_migrate_an_empty_database_once(url: str) -> None:
    nodes = [_opener(url) for _ in range(10)]
    assert [node.wait(PATIENCE_S * 2) for node in nodes] == [0] * 10
    assert _applied(url) == [migration.number for migration in migrate.known("postgres")]


def test_a_node_that_waited_for_a_migration_sees_its_tables(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server remembers for its session that there was no schema, and a lock alone does not make it look again.

    A whole migration makes it look again by chance, so this one is small.
    """
    small = migrate.Migration(1, "small", "SELECT 1")
    monkeypatch.setattr(migrate, "known", lambda dialect: [small])
    for name in ("prepare", "prepare_new"):
        monkeypatch.setattr(postgres_partitions, name, lambda *args: None)
    first, second = (Link(postgres_url.parse(url), "test", planner=False) for _ in range(2))
    lock = b"(hashtextextended('rota migrations of rota', 0))"
    first.connection.execute(b"SELECT pg_advisory_lock" + lock)
    with ThreadPoolExecutor() as threads:
        other = threads.submit(postgres_migrate.apply, second, "rota", SystemClock())
        eventually(lambda: bool(_waiting(url)), what="a node that waits for the lock")
        assert postgres_migrate.apply(first, "rota", SystemClock()) == [small]
        first.connection.execute(b"SELECT pg_advisory_unlock" + lock)
        assert other.result(PATIENCE_S) == []
    first.close()
    second.close()


def test_a_migration_whose_process_is_killed_is_rolled_back(url: str) -> None:
    """Another session creates one of the last objects of the migration: the migration waits for it, half-way done."""
    _execute(url, "CREATE SCHEMA rota")
    with psycopg.connect(url) as other:
        other.execute("CREATE TABLE rota.state ()")
        node = _opener(url)
        eventually(lambda: bool(_waiting(url)), what="a migration that waits")
        node.kill()
        assert node.wait(PATIENCE_S) == -signal.SIGKILL
        other.rollback()
    eventually(lambda: not _sessions(url), what="the end of its session")
    assert _execute(url, "SELECT relname FROM pg_class WHERE relnamespace = 'rota'::regnamespace") == []
    PostgresStore(url).close()
    assert _applied(url) == [migration.number for migration in migrate.known("postgres")]


def test_an_upgraded_schema_equals_a_fresh_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = migrate.known("postgres")
    known = (*first, migrate.Migration(len(first) + 1, "added", "ALTER TABLE audit ADD COLUMN added text"))
    with postgres.shared().database() as other:
        monkeypatch.setattr(migrate, "known", lambda dialect: known)
        PostgresStore(other).close()
        for count in range(1, len(known) + 1):
            monkeypatch.setattr(migrate, "known", lambda dialect, count=count: known[:count])
            link = Link(postgres_url.parse(url), "test", planner=False)
            assert len(postgres_migrate.apply(link, "rota", SystemClock())) == 1
            link.close()
        monkeypatch.undo()
        assert _catalogue(url) == _catalogue(other)
        assert len(_catalogue(url)) > 100


def test_an_old_node_refuses_a_newer_schema_and_touches_nothing(url: str) -> None:
    PostgresStore(url).close()
    _execute(url, "INSERT INTO rota.migration VALUES (999, 'tomorrow', 'x', 0)")
    before = _catalogue(url)
    with pytest.raises(StoreMismatch, match="upgrade Rota"):
        PostgresStore(url)
    assert _catalogue(url) == before


def test_a_dry_run_prints_the_sql_and_changes_nothing(url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rota", "--url", url, "migrate"]
    shown = subprocess.run([*command, "--dry-run"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert all(migration.text.strip() in shown.stdout for migration in migrate.known("postgres"))
    assert not _has_schema(url)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == [migration.name for migration in migrate.known("postgres")]


def _opener(url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _OPEN, url])


def _waiting(url: str) -> list[tuple[Any, ...]]:
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return _execute(url, query)


def _sessions(url: str) -> list[tuple[Any, ...]]:
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return _execute(url, query)


def _applied(url: str) -> list[int]:
    return [row[0] for row in _execute(url, "SELECT number FROM rota.migration ORDER BY number")]


def _has_schema(url: str) -> bool:
    return bool(_execute(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'rota'"))


def _catalogue(url: str) -> list[tuple[Any, ...]]:
    """Everything that a schema consists of, without numbers and times that differ between any two databases."""
    return sorted(
        row
        for query in (
            """SELECT 'column', c.relname, c.relkind, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod),
                      a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid), c.reloptions::text
               FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
               LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
               WHERE c.relnamespace = 'rota'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped""",
            "SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'rota'",
            """SELECT 'constraint', conname, conrelid::regclass::text, pg_get_constraintdef(oid)
               FROM pg_constraint WHERE connamespace = 'rota'::regnamespace""",
            """SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc
               WHERE pronamespace = 'rota'::regnamespace""",
            "SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'rota'",
            "SELECT 'partition', c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_class c"
            " WHERE c.relnamespace = 'rota'::regnamespace AND c.relispartition",
            """SELECT 'trigger', tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
               WHERE c.relnamespace = 'rota'::regnamespace AND NOT tgisinternal""",
        )
        for row in [tuple(map(str, found)) for found in _execute(url, query)]
    )


def _execute(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []
