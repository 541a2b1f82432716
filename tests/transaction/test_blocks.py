# ruff: noqa: PT012 (what is raised at the end of a transaction is raised by the whole block)
"""One block at a time ends an execution, every rollback raises, and the connection is reset afterwards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from rota import Context, DefinitionError, Status
from rota.sdk.job import registered
from tests.support import pgbouncer, postgres
from tests.support.pgbouncer import PgBouncer
from tests.transaction.shop import Shop, written

WRITE = "INSERT INTO ledger (entry) VALUES (%s)"


def status(shop: Shop, ctx: Context) -> Status:
    return shop.app.handle(ctx.id).status()


# --- One block at a time ---


def test_a_nested_block_is_refused_and_writes_nothing(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(DefinitionError, match=r"ctx.transaction\(\) is open already"), ctx.transaction() as outer:
        outer.execute(WRITE, ["outer"])
        with ctx.transaction() as inner:
            inner.execute(WRITE, ["inner"])
    assert (status(shop, ctx), shop.ledger(), written(ctx)) == (Status.RUNNING, [], None)


def test_a_refused_nested_block_does_not_fail_the_outer_one(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with ctx.transaction() as outer:
        outer.execute(WRITE, ["outer"])
        with pytest.raises(DefinitionError, match="is open already"), ctx.transaction():
            pass
    assert (status(shop, ctx), shop.ledger()) == (Status.SUCCESS, ["outer"])


async def test_an_async_nested_block_is_refused_and_writes_nothing(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(DefinitionError, match=r"ctx.transaction\(\) is open already"):
        async with ctx.transaction() as outer:
            await outer.execute(WRITE, ["outer"])
            async with ctx.transaction() as inner:
                await inner.execute(WRITE, ["inner"])
    assert (status(shop, ctx), shop.ledger(), written(ctx)) == (Status.RUNNING, [], None)


def test_another_block_may_follow_a_failed_one(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(ZeroDivisionError), ctx.transaction():
        raise ZeroDivisionError
    with ctx.transaction() as conn:
        conn.execute(WRITE, ["second"])
    assert (status(shop, ctx), shop.ledger()) == (Status.SUCCESS, ["second"])


def test_an_execution_with_an_open_block_cannot_complete_elsewhere(shop: Shop) -> None:
    """Completed elsewhere and committed, the execution would be a success without the effect of the block."""
    ctx = shop.start(shop.send, "a")
    with ctx.transaction() as conn, psycopg.connect(shop.url) as own:
        conn.execute(WRITE, ["block"])
        with pytest.raises(DefinitionError, match="completes there"):
            ctx.complete(own, 7)
    assert (status(shop, ctx), shop.ledger()) == (Status.SUCCESS, ["block"])


def test_complete_accepts_a_cursor_of_the_block(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with ctx.transaction() as conn, conn.cursor() as cursor:
        cursor.execute(WRITE, ["block"])
        ctx.complete(cursor, 7)
    assert (shop.app.handle(ctx.id).result(), shop.ledger()) == (7, ["block"])


def test_an_object_that_is_no_connection_is_refused_with_a_clear_error(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(DefinitionError, match="is not a connection that Rota can work on"):
        ctx.complete(None, 7)


# --- No silence ---


def test_a_psycopg_rollback_is_a_failure(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    refused = pytest.raises(DefinitionError, match="not complete: raise FailForGood, RetryIn or Snooze")
    with refused, ctx.transaction() as conn:
        conn.execute(WRITE, ["a"])
        raise psycopg.Rollback
    assert (status(shop, ctx), shop.ledger(), written(ctx)) == (Status.RUNNING, [], None)
    with ctx.transaction() as conn:
        conn.execute(WRITE, ["b"])
    assert (status(shop, ctx), shop.ledger()) == (Status.SUCCESS, ["b"])


async def test_an_async_psycopg_rollback_is_a_failure(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(DefinitionError, match="not complete: raise FailForGood, RetryIn or Snooze"):
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, ["a"])
            raise psycopg.Rollback
    assert (status(shop, ctx), shop.ledger(), written(ctx)) == (Status.RUNNING, [], None)


def test_a_job_may_roll_back_to_a_savepoint(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with ctx.transaction() as conn:
        conn.execute(WRITE, ["kept"])
        with conn.transaction():
            conn.execute(WRITE, ["undone"])
            raise psycopg.Rollback
    assert (status(shop, ctx), shop.ledger()) == (Status.SUCCESS, ["kept"])


# --- As new ---

LEFT = (
    "SET search_path = nowhere",
    "LISTEN leak",
    "SELECT pg_advisory_lock(42)",
    "CREATE TEMP TABLE leak (a int)",
    "DECLARE leak CURSOR WITH HOLD FOR SELECT 1",
)
SEEN = """
SELECT pg_backend_pid(), session_user, current_user, current_setting('search_path'), to_regclass('pg_temp.leak'),
       (SELECT count(*) FROM pg_listening_channels()), (SELECT count(*) FROM pg_cursors WHERE name = 'leak'),
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
"""


@pytest.fixture
def role(shop: Shop) -> Iterator[str]:
    """One that the app's may become."""
    name = f"other_{shop.url.rpartition('_')[2]}"
    server = postgres.shared()
    server.execute(f"CREATE ROLE {name}")
    server.execute(f"GRANT {name} TO rota")
    yield name
    server.execute(f"DROP ROLE {name}")


def of(conn: Any) -> Any:
    return conn.execute(SEEN.encode(), prepare=False)


def test_session_state_is_reset_for_the_next_job(shop: Shop, role: str) -> None:
    ctx = shop.start(shop.send, "a")
    with ctx.transaction() as conn:
        before = of(conn).fetchone()
    ctx = shop.start(shop.send, "b")
    with pytest.raises(ZeroDivisionError), ctx.transaction() as conn:
        conn.execute(f"SET ROLE {role}".encode())
        raise ZeroDivisionError
    with ctx.transaction() as conn:
        for statement in LEFT:
            conn.execute(statement.encode())
        conn.cursor_factory = psycopg.ClientCursor
        conn.prepare_threshold = 0
    with shop.start(shop.send, "c").transaction() as conn:
        assert of(conn).fetchone() == before
        assert (conn.cursor_factory, conn.prepare_threshold) == (psycopg.Cursor, 5)


def test_a_role_is_reset_after_the_block(shop: Shop, role: str) -> None:
    """It needs rights of its own, or the outcome could not be written with it."""
    shop.query(f"GRANT USAGE ON SCHEMA rota TO {role}")
    shop.query(f"GRANT ALL ON ALL TABLES IN SCHEMA rota TO {role}")
    with shop.start(shop.send, "a").transaction() as conn:
        before = of(conn).fetchone()
    with shop.start(shop.send, "b").transaction() as conn:
        conn.execute(f"SET ROLE {role}".encode())
    with shop.start(shop.send, "c").transaction() as conn:
        assert of(conn).fetchone() == before
    shop.query(f"DROP OWNED BY {role}")


async def test_async_session_state_is_reset_for_the_next_job(shop: Shop) -> None:
    async with shop.start(shop.send, "a").transaction() as conn:
        before = await (await of(conn)).fetchone()
    async with shop.start(shop.send, "b").transaction() as conn:
        for statement in LEFT:
            await conn.execute(statement.encode())
    async with shop.start(shop.send, "c").transaction() as conn:
        assert await (await of(conn)).fetchone() == before


def test_prepared_statements_are_kept(shop: Shop) -> None:
    for _ in range(2):
        with shop.start(shop.send, "a").transaction() as conn:
            conn.execute("SELECT 'mine'", prepare=True)
            found = conn.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT ''mine'''")
            assert found.fetchone() == (1,)


def test_session_state_of_other_clients_behind_a_pooler_is_not_reset(shop: Shop) -> None:
    pgbouncer.require()
    shop.start(shop.send, "a")
    with PgBouncer(postgres.shared(), pool_size=1) as pooler:
        completions: Any = registered(shop.send).target.completions
        pool = completions.pool()
        pool._address = type(pool._address)(pooler.through(shop.url), pool._address.schema, pool._address.shown)
        with psycopg.connect(pooler.through(shop.url), autocommit=True, prepare_threshold=None) as other:
            other.execute("SELECT pg_advisory_lock(42)")  # On the only connection that there is.
            with shop.start(shop.send, "b").transaction() as conn:
                conn.execute("SET search_path = nowhere")
            held = other.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42").fetchone()
            assert held == (1,)
            assert other.execute("SHOW search_path").fetchone() == ("public",)
        shop.app.close()


def test_after_a_fork_a_process_has_connections_of_its_own(shop: Shop) -> None:
    """As in a web server that has called a job before it forks its processes."""

    @shop.app.job
    def backend(ctx: Context) -> int:
        with ctx.transaction() as conn:
            return conn.info.backend_pid

    parent = backend()
    if (child := os.fork()) == 0:
        with contextlib.suppress(BaseException):
            os._exit(0 if backend() != parent else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert backend() == parent
