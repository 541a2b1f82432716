# ruff: noqa: PT012 (what is raised at the end of a transaction is raised by the whole block)
"""A job that completes in a transaction: its effect and its outcome are committed together, or neither is."""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from rota import App, CommitUnknown, Context, DefinitionError, Status
from rota.domain.claim import Claim
from rota.domain.errors import LeaseLost
from rota.domain.outcome import Error, Failed, Lost
from rota.domain.status import Reason
from rota.executors.attempt_state import AttemptState
from rota.executors.context import ResultRefused
from rota.ops import finish
from rota.ops.finish import Finished
from rota.sdk.job import registered
from tests.support import postgres
from tests.support.proxy import Proxy
from tests.transaction.callers import CALLERS, Caller
from tests.transaction.shop import CLAIM, Shop, send, written

WRITE = "INSERT INTO ledger (entry, fence) VALUES (%s, %s)"
NOT_COMMITTED = Failed(Error("NotCommitted", ""))


def pay(ctx: Context, result: object = "paid") -> None:
    with ctx.transaction() as conn:
        conn.execute(WRITE, (ctx.id, ctx.fence))
        ctx.complete(conn, result)


async def apay(ctx: Context, result: object = "paid") -> None:
    async with ctx.transaction() as conn:
        await conn.execute(WRITE, (ctx.id, ctx.fence))
        ctx.complete(conn, result)


def status(shop: Shop, ctx: Context) -> Status:
    return shop.app.handle(ctx.id).status()


def lose(shop: Shop, ctx: Context) -> None:
    """The worker is declared dead, and the execution returns to the queue."""
    shop.store.transact(finish.finish, [Finished(ctx.id, ctx.fence, Lost(Error("Lost", "")))])


def test_effect_and_outcome_are_committed_together(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with ctx.transaction() as conn:
        conn.execute(WRITE, (ctx.id, ctx.fence))
        assert ctx.complete(conn, {"cents": 5}) == {"cents": 5}
        assert (status(shop, ctx), shop.ledger()) == (Status.RUNNING, [])
    assert (status(shop, ctx), shop.ledger()) == (Status.SUCCESS, [ctx.id])
    assert shop.app.handle(ctx.id).result() == {"cents": 5}
    (attempt,) = shop.app.handle(ctx.id).attempts()
    assert (attempt.status, attempt.reason, attempt.attempt) == ("success", "completed", 1)


def test_without_complete_the_result_is_null(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with ctx.transaction() as conn:
        conn.execute(WRITE, (ctx.id, ctx.fence))
    assert shop.app.handle(ctx.id).result() is None


async def test_async_jobs_complete_in_a_transaction(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    await apay(ctx)
    assert (shop.app.handle(ctx.id).result(), shop.ledger()) == ("paid", [ctx.id])
    other = shop.start(shop.send, "b")
    with pytest.raises(ZeroDivisionError):
        async with other.transaction() as conn:
            await conn.execute(WRITE, (other.id, 1))
            raise ZeroDivisionError
    assert (status(shop, other), shop.ledger(), written(other)) == (Status.RUNNING, [ctx.id], None)


def test_the_report_of_the_worker_after_a_completion_is_ignored(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    pay(ctx)
    with shop.hints() as bus:
        assert shop.report(ctx, NOT_COMMITTED) == [ctx.id]
        assert [getattr(hint, "ids", None) for hint in bus.hints] == [(ctx.id,)]
    assert status(shop, ctx) is Status.SUCCESS


def test_an_exception_rolls_back_and_is_an_ordinary_failure(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(ZeroDivisionError), ctx.transaction() as conn:
        conn.execute(WRITE, (ctx.id, ctx.fence))
        ctx.complete(conn, "paid")
        raise ZeroDivisionError
    assert written(ctx) is None
    assert (status(shop, ctx), shop.ledger()) == (Status.RUNNING, [])
    assert shop.report(ctx, Failed(Error("ZeroDivisionError", ""), permanent=True)) == []
    assert status(shop, ctx) is Status.FAILED


def test_a_stale_attempt_is_refused_and_its_effect_rolled_back(shop: Shop) -> None:
    old = shop.start(shop.send, "a")
    lose(shop, old)
    with pytest.raises(LeaseLost, match=r"attempt 1 of execution .* is no longer the one that counts"):
        pay(old)
    assert (shop.ledger(), written(old)) == ([], None)
    new = shop.context(shop.claim(shop.worker()))
    with pytest.raises(LeaseLost):
        pay(old)
    pay(new)
    with pytest.raises(LeaseLost):
        pay(old)
    assert shop.query("SELECT entry, fence FROM ledger") == [(new.id, 2)]


def test_a_rescue_waits_for_the_open_transaction_of_the_job(shop: Shop) -> None:
    """The first transaction to lock the row wins: here the job."""
    ctx = shop.start(shop.send, "a")
    with psycopg.connect(shop.url) as connection:
        connection.execute(WRITE, (ctx.id, 1))
        ctx.complete(connection, "paid")
        # A report while the transaction is open changes nothing and does not wait.
        assert shop.report(ctx, NOT_COMMITTED) == [ctx.id]
        rescue = shop.store.submit(finish.finish, [Finished(ctx.id, ctx.fence, Lost(Error("Lost", "")))])
        connection.commit()
    assert rescue.result(timeout=30) == [ctx.id]
    assert (status(shop, ctx), shop.ledger()) == (Status.SUCCESS, [ctx.id])


def test_commit_and_rollback_inside_the_block_are_refused(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(psycopg.ProgrammingError), ctx.transaction() as conn:
        conn.execute(WRITE, (ctx.id, ctx.fence))
        conn.commit()
    assert (status(shop, ctx), shop.ledger()) == (Status.RUNNING, [])


def test_a_job_completes_once(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    pay(ctx)
    with pytest.raises(DefinitionError, match="has already completed"):
        pay(ctx)
    assert shop.ledger() == [ctx.id]


def test_a_deferred_constraint_that_fails_at_the_commit_leaves_no_effect(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(psycopg.errors.UniqueViolation), ctx.transaction() as conn:
        conn.execute("CREATE TEMP TABLE one (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        conn.execute("INSERT INTO one VALUES (1), (1)")
    assert (status(shop, ctx), written(ctx)) == (Status.RUNNING, None)


def test_a_result_that_cannot_be_stored_is_refused(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(ResultRefused) as refused:
        pay(ctx, float("nan"))
    outcome = registered(shop.send).function_executor.raised(refused.value, CLAIM)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.permanent) == (Reason.BAD_RESULT, True)
    assert (shop.ledger(), status(shop, ctx)) == ([], Status.RUNNING)


def test_a_connection_is_reset_before_it_is_reused(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with ctx.transaction() as conn:
        conn.row_factory = dict_row  # type: ignore[assignment]
        conn.execute("SET search_path = nowhere")
        first = conn.info.backend_pid
    other = shop.start(shop.send, "b")
    with other.transaction() as conn:
        assert conn.info.backend_pid == first
        assert conn.execute("SHOW search_path").fetchone() == ("public",)


def test_a_connection_that_broke_while_it_was_idle_is_replaced(shop: Shop) -> None:
    pay(shop.start(shop.send, "a"))
    postgres.shared().terminate_backends(shop.url.rpartition("/")[2])
    ctx = shop.start(shop.send, "b")
    pay(ctx)
    assert status(shop, ctx) is Status.SUCCESS


def test_an_enqueue_in_the_block_is_committed_with_it(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with shop.hints() as bus:
        with pytest.raises(ZeroDivisionError), ctx.transaction() as conn:
            shop.send.within(conn).enqueue("next")
            raise ZeroDivisionError
        assert (shop.count(), bus.hints) == (1, [])
        with ctx.transaction() as conn:
            shop.send.within(conn).enqueue("next")
            assert bus.hints == []
        assert (shop.count(), len(bus.hints)) == (2, 1)


def test_a_direct_call_has_a_transaction_and_no_outcome(shop: Shop) -> None:
    @shop.app.job
    def charge(ctx: Context, order: str) -> str:
        with ctx.transaction() as conn:
            conn.execute(WRITE, (order, ctx.fence))
            ctx.complete(conn, f"{order} paid")
        return f"{order} paid"

    assert charge("order-1") == "order-1 paid"
    assert shop.ledger() == ["order-1"]


def test_a_transaction_on_sqlite_is_refused(tmp_path: Any) -> None:
    app = App("shop", url=f"sqlite:///{tmp_path}/rota.db")
    job = app.job(send)
    ctx = Context(AttemptState(shop_claim(), None, registered(job).target.completions))
    with pytest.raises(DefinitionError, match="only PostgreSQL"), ctx.transaction():
        pass
    with pytest.raises(DefinitionError, match="only in a worker, on PostgreSQL"):
        Context(AttemptState(shop_claim(), None)).transaction()
    app.close()


def shop_claim() -> Any:
    return Claim("", 0, 0, 1, 0, 0, 0, 0, None, "send", "{}", None, 0, 0)


# --- In a transaction of the job's own framework ---


@pytest.fixture(params=CALLERS)
def caller(request: pytest.FixtureRequest, shop: Shop) -> Any:
    with CALLERS[request.param](shop.url) as caller:
        yield caller


def test_a_completion_is_committed_with_a_framework(shop: Shop, caller: Caller) -> None:
    ctx = shop.start(shop.send, "a")
    caller.run(f"INSERT INTO ledger (entry) VALUES ('{ctx.id}')")
    assert ctx.complete(caller.connection, 7) == 7
    assert (status(shop, ctx), shop.ledger()) == (Status.RUNNING, [])
    caller.commit()
    assert (shop.app.handle(ctx.id).result(), shop.ledger()) == (7, [ctx.id])
    assert shop.report(ctx, NOT_COMMITTED) == [ctx.id]
    assert status(shop, ctx) is Status.SUCCESS


def test_a_completion_that_a_framework_rolled_back_is_a_failure(shop: Shop, caller: Caller) -> None:
    """The function returned, but its transaction was rolled back: a failure, which is retried."""
    ctx = shop.start(shop.send, "a")
    caller.run(f"INSERT INTO ledger (entry) VALUES ('{ctx.id}')")
    ctx.complete(caller.connection, 7)
    caller.rollback()
    assert shop.report(ctx, NOT_COMMITTED) == []
    assert (status(shop, ctx), shop.ledger()) == (Status.RETRYING, [])


def test_a_stale_attempt_in_a_framework_is_refused(shop: Shop, caller: Caller) -> None:
    ctx = shop.start(shop.send, "a")
    lose(shop, ctx)
    caller.run(f"INSERT INTO ledger (entry) VALUES ('{ctx.id}')")
    with pytest.raises(LeaseLost):
        ctx.complete(caller.connection, 7)
    caller.rollback()
    assert (status(shop, ctx), shop.ledger()) == (Status.QUEUED, [])


async def test_an_async_completion_is_committed_with_a_framework(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    async with await psycopg.AsyncConnection.connect(shop.url) as connection:
        await connection.execute(WRITE, (ctx.id, 1))
        assert await ctx.acomplete(connection, 7) == 7
    assert (shop.app.handle(ctx.id).result(), shop.ledger()) == (7, [ctx.id])


# --- When the COMMIT gets no answer ---


@contextlib.contextmanager
def behind_a_proxy(shop: Shop) -> Any:
    """The job's own connections go through a bad network, Rota's do not."""
    with Proxy(postgres.shared().port) as proxy:
        completions = registered(shop.send).target.completions
        pool = completions.pool()  # type: ignore[union-attr]
        pool._address = type(pool._address)(proxy.through(shop.url), pool._address.schema, pool._address.shown)
        yield proxy
        shop.app.close()


def test_a_commit_that_does_not_reach_the_server_raises_and_has_no_effect(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with behind_a_proxy(shop) as proxy:
        proxy.drop_commits("before", count=1)
        with pytest.raises(psycopg.OperationalError):
            pay(ctx)
    assert proxy.counts.dropped_before == 1
    assert (status(shop, ctx), shop.ledger(), written(ctx)) == (Status.RUNNING, [], None)


def test_a_commit_whose_answer_was_lost_is_a_success(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with behind_a_proxy(shop) as proxy:
        proxy.drop_commits("after", count=1)
        pay(ctx)
    assert proxy.counts.dropped_after == 1
    assert (status(shop, ctx), shop.ledger()) == (Status.SUCCESS, [ctx.id])


def test_a_commit_with_an_unknown_outcome_is_decided_by_the_database(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job gets `CommitUnknown`; the database decides about the report that follows."""
    ctx = shop.start(shop.send, "a")
    completions: Any = registered(shop.send).target.completions
    monkeypatch.setattr(completions, "has_landed", unknown)
    with behind_a_proxy(shop) as proxy:
        proxy.drop_commits("after", count=1)
        with pytest.raises(CommitUnknown):
            pay(ctx)
    assert shop.report(ctx, Failed(Error("CommitUnknown", ""))) == [ctx.id]
    assert (status(shop, ctx), shop.ledger()) == (Status.SUCCESS, [ctx.id])


def unknown(ctx: Context) -> bool:
    raise CommitUnknown("the server cannot be asked")


def test_a_backend_that_is_terminated_during_the_block_leaves_no_effect(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with pytest.raises(psycopg.OperationalError), ctx.transaction() as conn:
        conn.execute(WRITE, (ctx.id, ctx.fence))
        postgres.shared().execute("SELECT pg_terminate_backend(%s)", [conn.info.backend_pid])
    assert (status(shop, ctx), shop.ledger(), written(ctx)) == (Status.RUNNING, [], None)
    pay(ctx)
    assert shop.ledger() == [ctx.id]
