# ruff: noqa: PT012 (what is raised at the end of a transaction is raised by the whole block)
"""A block that conflicts with another transaction at its end runs again, and no attempt is counted."""

from __future__ import annotations

import psycopg
import pytest

from rota import App, Context, Snooze, Status
from rota.domain.claim import Claim
from rota.domain.duration import seconds
from rota.domain.outcome import Failed, Snoozed
from rota.executors.attempt_state import AttemptState
from rota.sdk.job import registered
from rota.sdk.serialization_failure import FREE_CONFLICTS, LATEST_S
from tests.support import postgres
from tests.support.databases import fresh_database
from tests.transaction.shop import CLAIM, Shop, send, written

WRITE = "INSERT INTO ledger (entry) VALUES (%s)"
TOUCH = "UPDATE rota.running SET started_at = started_at WHERE id = %s"
LATE = (
    "CREATE TEMP TABLE late (a int)",
    "CREATE FUNCTION pg_temp.lose() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN RAISE EXCEPTION 'too late' USING ERRCODE = 'deadlock_detected'; END $$",
    "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
    " EXECUTE FUNCTION pg_temp.lose()",
    "INSERT INTO late VALUES (1)",
)


def test_a_transaction_is_read_committed_for_every_default() -> None:
    url = fresh_database()
    postgres.shared().execute(
        f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_isolation = 'serializable'"
    )
    shop = Shop(url)
    with shop.start(shop.send, "a").transaction() as conn:
        assert conn.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
    with shop.start(shop.send, "b").transaction() as conn:
        conn.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        assert conn.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
    with shop.start(shop.send, "c").transaction() as conn:
        assert conn.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
    shop.app.close()


async def test_an_async_transaction_is_read_committed_for_every_default() -> None:
    url = fresh_database()
    postgres.shared().execute(
        f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_isolation = 'serializable'"
    )
    shop = Shop(url)
    async with shop.start(shop.send, "a").transaction() as conn:
        assert await (await conn.execute("SHOW transaction_isolation")).fetchone() == ("read committed",)
    shop.app.close()


def test_a_conflict_when_the_outcome_is_written_counts_no_attempt(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(Snooze, match="could not serialize access") as raised, ctx.transaction() as conn:
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute(WRITE, ["a"])
        shop.query(TOUCH, ctx.id)
    assert isinstance(raised.value, psycopg.errors.SerializationFailure), "a job may still catch it, and try again"
    assert (status(shop, ctx), shop.ledger(), written(ctx)) == (Status.RUNNING, [], None)
    outcome = registered(shop.send).function_executor.raised(raised.value, CLAIM)
    assert isinstance(outcome, Snoozed)
    assert shop.report(ctx, outcome) == []
    assert status(shop, ctx) is Status.SCHEDULED
    assert shop.query("SELECT attempts FROM rota.scheduled WHERE id = %s", ctx.id) == [(0,)]


def test_a_conflict_at_the_commit_counts_no_attempt(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(Snooze, match="too late") as raised, ctx.transaction() as conn:
        for statement in LATE:
            conn.execute(statement.encode())
    assert isinstance(raised.value, psycopg.errors.DeadlockDetected)
    assert (status(shop, ctx), written(ctx)) == (Status.RUNNING, None)


async def test_an_async_conflict_at_the_commit_counts_no_attempt(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(Snooze, match="too late"):
        async with ctx.transaction() as conn:
            for statement in LATE:
                await conn.execute(statement.encode())
    assert (status(shop, ctx), written(ctx)) == (Status.RUNNING, None)


def test_a_conflict_that_repeats_too_often_is_a_failure(shop: Shop) -> None:
    """Each start waits longer, and after some the error is a failure like any other."""
    ctx = shop.start(shop.send, "a")
    for starts in (1, FREE_CONFLICTS):
        with pytest.raises(Snooze) as raised:
            lose(shop, ctx, starts)
        assert 0 < seconds(raised.value.delay) < LATEST_S * 2
    with pytest.raises(psycopg.errors.DeadlockDetected) as last:
        lose(shop, ctx, FREE_CONFLICTS + 1)
    assert not isinstance(last.value, Snooze)
    outcome = registered(shop.send).function_executor.raised(last.value, CLAIM)
    assert isinstance(outcome, Failed)
    assert not outcome.permanent


def lose(shop: Shop, ctx: Context, starts: int) -> None:
    claim = Claim(ctx.id, 0, 0, starts, 0, 0, 0, 0, None, "send", "{}", None, 0, 0)
    shop.query("UPDATE rota.running SET fence = %s WHERE id = %s", starts, ctx.id)
    with shop.context(claim).transaction() as conn:
        for statement in LATE:
            conn.execute(statement.encode())


def test_a_conflict_in_a_direct_call_is_raised_to_the_caller(url: str) -> None:
    app = App("direct", url=url)
    claim = Claim("", 0, 0, 1, 0, 0, 0, 0, None, "send", "{}", None, 0, 0)
    ctx = Context(AttemptState(claim, None, registered(app.job(send)).target.completions))
    with pytest.raises(psycopg.errors.DeadlockDetected) as raised, ctx.transaction() as conn:
        for statement in LATE:
            conn.execute(statement.encode())
    assert not isinstance(raised.value, Snooze)
    app.close()


def status(shop: Shop, ctx: Context) -> Status:
    return shop.app.handle(ctx.id).status()
