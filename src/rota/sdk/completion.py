"""Complete in a transaction of the job's own: its effect and its outcome are committed together, or neither is.

The outcome is written just before the COMMIT, under the attempt's fence. An attempt that no longer counts is refused
there, and its effect is rolled back. When the COMMIT got no answer, the database is asked how it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rota.clock import MACHINE
from rota.domain.errors import ArgumentsError, CommitUnknown, DefinitionError, StoreUnavailable
from rota.domain.outcome import Succeeded
from rota.executors.attempt_state import AttemptState
from rota.executors.context import ResultRefused
from rota.ops import finish
from rota.ops.finish import Finished
from rota.sdk import transaction
from rota.sdk.connection import Connection
from rota.sdk.sync_or_async import run_sync
from rota.sdk.transaction import Caller

if TYPE_CHECKING:
    import psycopg

    from rota.sdk.pool import Pool

T = TypeVar("T")
PAUSE_S = 0.05


class JobCompletions:
    """Implements `rota.executors.attempt_state.Completions` for the jobs of one app."""

    def __init__(self, link: Connection) -> None:
        self.link = link
        self.most_bytes = link.settings.max_result_bytes
        self.open: dict[AttemptState, _Block] = {}
        self._reset_after_fork()
        os.register_at_fork(after_in_child=self._reset_after_fork)

    def _reset_after_fork(self) -> None:
        """After a fork: the open connections belong to the parent, and one of its threads may hold the lock."""
        self._lock = threading.Lock()
        self._pools: dict[asyncio.AbstractEventLoop | None, Pool] = {}

    def transaction(self, attempt: AttemptState) -> _Block:
        transaction.check_database(self.link)
        return _Block(self, attempt)

    def complete(self, attempt: AttemptState, connection: Any, result: str) -> None:
        run_sync(self._complete(attempt, connection, result, is_async=False))

    async def acomplete(self, attempt: AttemptState, connection: Any, result: str) -> None:
        await self._complete(attempt, connection, result, is_async=True)

    async def _complete(self, attempt: AttemptState, connection: Any, result: str, *, is_async: bool) -> None:
        if (block := self._block_of(attempt, connection)) is not None:
            block.result = result
        else:
            await self.write(attempt, connection, result, is_async=is_async)

    def _block_of(self, attempt: AttemptState, connection: Any) -> _Block | None:
        """The open block of the attempt; None if it has none and completes on a connection of its own."""
        block = self.open.get(attempt)
        if block is not None and block.connection is not transaction.bare(connection):
            raise DefinitionError(
                "ctx.transaction() is open: this execution completes there, so give ctx.complete() the connection of "
                "that block"
            )
        return block

    async def write(self, attempt: AttemptState, connection: Any, result: str, *, is_async: bool) -> None:
        """Writes the outcome in the transaction of `connection`."""
        _check_not_completed(attempt)
        if not (claim := attempt.claim).id:
            return  # In a direct call there is no execution to end.
        report = finish.timed(Finished(claim.id, claim.fence, Succeeded(result), job=claim.job), claim)
        caller, op = Caller(connection, ends=True), partial(finish.complete, report=report)
        attempt.written = result
        try:
            if is_async:
                await transaction.atransact(self.link, caller, op)
            else:
                transaction.transact(self.link, caller, op)
        except BaseException as error:
            attempt.written = None
            if isinstance(error, ArgumentsError):
                raise ResultRefused(str(error)) from None
            raise

    def has_landed(self, attempt: AttemptState) -> bool:
        """Whether a COMMIT without an answer was done. Raises CommitUnknown if the database cannot say."""
        give_up_at = MACHINE.monotonic() + self.link.settings.busy_s
        pause = threading.Event()
        problem = "a transaction is still open that may commit it"
        while MACHINE.monotonic() < give_up_at:
            try:
                landed = self.link.store().transact(finish.has_landed, attempt.claim.id, attempt.claim.fence)
            except StoreUnavailable as error:
                problem = str(error)
                landed = None
            if landed is not None:
                return landed
            pause.wait(PAUSE_S)
        raise CommitUnknown(f"the connection broke during the commit, and how it ended is not known yet: {problem}")

    def pool(self, loop: asyncio.AbstractEventLoop | None = None) -> Pool:
        """The sync connections, or the async ones of an event loop."""
        from rota.sdk.pool import Pool  # lazy: only with PostgreSQL

        with self._lock:
            for gone in [known for known in self._pools if known is not None and known.is_closed()]:
                self._pools.pop(gone).close()
            if loop not in self._pools:
                self._pools[loop] = Pool(self.link.settings.url, is_async=loop is not None)
            return self._pools[loop]

    def close(self) -> None:
        with self._lock:
            while self._pools:
                self._pools.popitem()[1].close()


class _Block:
    """One `with ctx.transaction()` or `async with ctx.transaction()`."""

    def __init__(self, completions: JobCompletions, attempt: AttemptState) -> None:
        self._completions = completions
        self._attempt = attempt
        self._loop: asyncio.AbstractEventLoop | None = None
        self.result = "null"

    def __enter__(self) -> psycopg.Connection[tuple[Any, ...]]:
        return run_sync(self._enter())

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> Literal[False]:
        return run_sync(self._exit(error))

    async def __aenter__(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        self._loop = asyncio.get_running_loop()
        return await self._enter()  # type: ignore[no-any-return]

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> Literal[False]:
        return await self._exit(error)

    @property
    def connection(self) -> Any:
        return self._held.connection

    async def _enter(self) -> Any:
        _check_not_completed(self._attempt)
        # Two blocks at once: the inner one would end the execution, and the outer one be rolled back.
        if self._completions.open.setdefault(self._attempt, self) is not self:
            raise DefinitionError(
                "ctx.transaction() is open already, and an execution completes once: use the connection of the "
                "outer block, and `with conn.transaction():` for a savepoint in it"
            )
        try:
            await self._blocking(transaction.known, self._completions.link)  # Before a connection is made.
            self._pool = self._completions.pool(self._loop)
            self._held = await self._pool.begin()
        except BaseException:
            del self._completions.open[self._attempt]
            raise
        transaction.after_commit[self.connection] = []
        return self.connection

    async def _exit(self, error: BaseException | None) -> Literal[False]:
        if error is not None:
            await self._end(error)
            _check_no_rollback(error)
            return False
        with _uncounted(self._attempt):
            try:
                is_async = self._loop is not None
                await self._completions.write(self._attempt, self.connection, self.result, is_async=is_async)
            except BaseException as refused:
                await self._end(refused)
                raise
            await self._end(None)
        return False

    async def _end(self, error: BaseException | None) -> None:
        hooks = transaction.after_commit.pop(self.connection, [])
        del self._completions.open[self._attempt]
        try:
            await self._held.end(error)
        except BaseException as lost:
            is_broken = self.connection.closed
            self._pool.drop(self._held)
            if isinstance(lost, asyncio.CancelledError):
                raise  # Stopped in the middle of the COMMIT: the worker's report will show whether it was done.
            if error is not None:
                return  # A transaction that cannot even be rolled back is not committed.
            # An answer to the COMMIT is a refusal, as of a constraint that is checked at the end.
            is_refused = not is_broken or self._attempt.written is None or not isinstance(lost, Exception)
            if is_refused or not await self._blocking(self._completions.has_landed, self._attempt):
                self._attempt.written = None
                raise
        else:
            await self._pool.give_back(self._held)
        for hook in hooks if error is None else []:
            with contextlib.suppress(Exception):
                hook()

    async def _blocking(self, call: Callable[..., T], *args: Any) -> T:
        return call(*args) if self._loop is None else await asyncio.to_thread(call, *args)


@contextlib.contextmanager
def _uncounted(attempt: AttemptState) -> Iterator[None]:
    """If the block fails because of a conflict with another transaction, the execution is retried soon, and no attempt
    is counted."""
    try:
        yield
    except Exception as error:
        from rota.sdk.serialization_failure import conflict  # lazy: only with PostgreSQL

        claim = attempt.claim
        # In a direct call no worker would run it again.
        again = conflict(error, claim.fence - claim.attempts - 1, MACHINE.random()) if claim.id else None
        if again is None:
            raise
        raise again from error


def _check_no_rollback(error: BaseException) -> None:
    """psycopg.Rollback ends blocks without an error: the function would continue as if they had been committed."""
    from psycopg import Rollback  # lazy: only with PostgreSQL

    if isinstance(error, Rollback):
        raise DefinitionError(
            "psycopg.Rollback has rolled back ctx.transaction(), so the execution is not complete: raise FailForGood, "
            "RetryIn or Snooze to say what becomes of it, or use `with conn.transaction():` for a part of the block"
        ) from error


def _check_not_completed(attempt: AttemptState) -> None:
    if attempt.written is not None:
        raise DefinitionError(
            "this execution has already completed: call ctx.complete() or commit ctx.transaction() only once"
        )
