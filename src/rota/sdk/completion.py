"""Complete in a transaction of the job's own: its effect and its outcome are committed together, or neither is.

The outcome is written just before the COMMIT, under the attempt's fence. An attempt that no longer counts is refused
there, and its effect is rolled back. When the COMMIT got no answer, the database is asked how it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from rota.clock import MACHINE
from rota.domain.errors import ArgumentsError, CommitUnknown, DefinitionError, StoreUnavailable
from rota.domain.outcome import Succeeded
from rota.executors.context import Context, ResultRefused
from rota.ops import finish
from rota.ops.finish import Finished
from rota.sdk import transaction
from rota.sdk.connection import Connection
from rota.sdk.transaction import Caller

if TYPE_CHECKING:
    import psycopg

    from rota.sdk.pool import AsyncPool, Pool

PAUSE_S = 0.05


class JobCompletions:
    """Implements `rota.executors.context.Completions` for the jobs of one app."""

    def __init__(self, link: Connection) -> None:
        self.link = link
        self.most_bytes = link.settings.max_payload_bytes
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._async_pool: AsyncPool | None = None
        self._open: weakref.WeakKeyDictionary[Any, _Transaction] = weakref.WeakKeyDictionary()
        self._entered: set[Context] = set()

    def transaction(self, context: Context) -> _Transaction:
        transaction.check_database(self.link)
        return _Transaction(self, context)

    def complete(self, context: Context, connection: Any, result: str) -> None:
        if (ours := self._block_of(context, connection)) is not None:
            ours.result = result
        else:
            self.write(context, connection, result)

    async def acomplete(self, context: Context, connection: Any, result: str) -> None:
        if (ours := self._block_of(context, connection)) is not None:
            ours.result = result
        else:
            await self.awrite(context, connection, result)

    def _block_of(self, context: Context, connection: Any) -> _Transaction | None:
        """The block that a connection is of; None for a connection of the job's own."""
        ours = None
        with contextlib.suppress(TypeError):  # Things that cannot be looked up are refused later, in words.
            ours = self._open.get(transaction.bare(connection))
        if ours is None and context in self._entered:
            raise DefinitionError(
                "ctx.transaction() is open: this execution completes there, so give ctx.complete() the connection of "
                "that block"
            )
        return ours

    def write(self, context: Context, connection: Any, result: str) -> None:
        """Writes the outcome in the transaction of `connection`."""
        if (report := _report(context, result)) is not None:
            with _writing(context, result):
                transaction.transact(self.link, Caller(connection, ends=True), finish.complete, report)

    async def awrite(self, context: Context, connection: Any, result: str) -> None:
        if (report := _report(context, result)) is not None:
            with _writing(context, result):
                await transaction.atransact(self.link, Caller(connection, ends=True), finish.complete, report)

    def has_landed(self, context: Context) -> bool:
        """How a COMMIT ended that got no answer. Raises CommitUnknown if nobody can be asked."""
        give_up_at = MACHINE.monotonic() + self.link.settings.busy_s
        pause = threading.Event()
        problem = "a transaction is still open that may commit it"
        while MACHINE.monotonic() < give_up_at:
            try:
                landed = self.link.store().transact(finish.has_landed, context.id, context.fence)
            except StoreUnavailable as error:
                problem = str(error)
                landed = None
            if landed is not None:
                return landed
            pause.wait(PAUSE_S)
        raise CommitUnknown(f"the connection broke during the commit, and how it ended is not known yet: {problem}")

    def pool(self) -> Pool:
        from rota.sdk.pool import Pool  # lazy: only with PostgreSQL

        with self._lock:
            if self._pool is None:
                self._pool = Pool(self.link.settings.url)
            return self._pool

    def async_pool(self) -> AsyncPool:
        from rota.sdk.pool import AsyncPool  # lazy: only with PostgreSQL

        with self._lock:
            if self._async_pool is None:
                self._async_pool = AsyncPool(self.link.settings.url)
            return self._async_pool

    @contextlib.contextmanager
    def entering(self, context: Context) -> Iterator[None]:
        """Refuses a second block while one is open: the inner would end the execution, and the outer be rolled back."""
        with self._lock:
            if context in self._entered:
                raise DefinitionError(
                    "ctx.transaction() is open already, and an execution completes once: use the connection of the "
                    "outer block, and `with conn.transaction():` for a savepoint in it"
                )
            _check_free(context)
            self._entered.add(context)
        try:
            yield
        except BaseException:
            self._entered.discard(context)
            raise

    def opened(self, connection: Any, block: _Transaction) -> None:
        self._open[connection] = block
        transaction.after_commit[connection] = []

    def closed(self, connection: Any, context: Context) -> list[Callable[[], None]]:
        """Returns what was to be done after the commit."""
        self._entered.discard(context)
        self._open.pop(connection, None)
        return transaction.after_commit.pop(connection, [])

    def close(self) -> None:
        with self._lock:
            for pool in (self._pool, self._async_pool):
                if pool is not None:
                    pool.close()
            self._pool = self._async_pool = None


class _Transaction:
    """One `with ctx.transaction()`."""

    def __init__(self, completions: JobCompletions, context: Context) -> None:
        self._completions = completions
        self._context = context
        self._connection: Any = None
        self._block: Any = None
        self.result = "null"

    def __enter__(self) -> psycopg.Connection[tuple[Any, ...]]:
        with self._completions.entering(self._context):
            transaction.known(self._completions.link)  # Refuses other databases before a connection is made.
            self._connection, self._block = self._completions.pool().begin()
            self._completions.opened(self._connection, self)
        return self._connection  # type: ignore[no-any-return]

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> Literal[False]:
        if error is not None:
            self._leave(error)
            _check_no_rollback(error)
            return False
        with _uncharged(self._context):
            try:
                self._completions.write(self._context, self._connection, self.result)
            except BaseException as refused:
                self._leave(refused)
                raise
            self._leave(None)
        return False

    def _leave(self, error: BaseException | None) -> None:
        pool, connection = self._completions.pool(), self._connection
        hooks = self._completions.closed(connection, self._context)
        try:
            self._block.__exit__(type(error) if error else None, error, error and error.__traceback__)
        except BaseException as lost:
            broken = pool.drop(connection)
            if error is not None:
                return  # A transaction that cannot even be rolled back is not committed.
            if self._is_refused(lost, broken) or not self._completions.has_landed(self._context):
                self._context.written = None
                raise
        else:
            pool.give(connection)
        self._after(error, hooks)

    async def __aenter__(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        with self._completions.entering(self._context):
            await asyncio.to_thread(transaction.known, self._completions.link)
            self._connection, self._block = await self._completions.async_pool().begin()
            self._completions.opened(self._connection, self)
        return self._connection  # type: ignore[no-any-return]

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> Literal[False]:
        if error is not None:
            await self._aleave(error)
            _check_no_rollback(error)
            return False
        with _uncharged(self._context):
            try:
                await self._completions.awrite(self._context, self._connection, self.result)
            except BaseException as refused:
                await self._aleave(refused)
                raise
            await self._aleave(None)
        return False

    async def _aleave(self, error: BaseException | None) -> None:
        pool, connection = self._completions.async_pool(), self._connection
        hooks = self._completions.closed(connection, self._context)
        try:
            await self._block.__aexit__(type(error) if error else None, error, error and error.__traceback__)
        except BaseException as lost:
            broken = await pool.drop(connection)
            if isinstance(lost, asyncio.CancelledError):
                raise  # Stopped in the middle of the COMMIT: the report will show what became of it.
            if error is not None:
                return
            if self._is_refused(lost, broken) or not await asyncio.to_thread(
                self._completions.has_landed, self._context
            ):
                self._context.written = None
                raise
        else:
            await pool.give(connection)
        self._after(error, hooks)

    def _is_refused(self, lost: BaseException, broken: bool) -> bool:
        """Whether the server said no to the COMMIT, as it does for a constraint that is checked at the end."""
        return not broken or self._context.written is None or not isinstance(lost, Exception)

    def _after(self, error: BaseException | None, hooks: list[Callable[[], None]]) -> None:
        if error is None:
            for hook in hooks:
                with contextlib.suppress(Exception):
                    hook()


@contextlib.contextmanager
def _writing(context: Context, result: str) -> Iterator[None]:
    context.written = result
    try:
        yield
    except ArgumentsError as error:
        context.written = None
        raise ResultRefused(str(error)) from None
    except BaseException:
        context.written = None
        raise


@contextlib.contextmanager
def _uncharged(context: Context) -> Iterator[None]:
    """Whoever only lost against another transaction runs again soon, and it costs no attempt."""
    try:
        yield
    except Exception as error:
        from rota.sdk.pool import conflict  # lazy: only with PostgreSQL

        # In a direct call there is nobody who would run it again.
        again = conflict(error, context.fence - context.attempt, MACHINE.random()) if context.id else None
        if again is None:
            raise
        raise again from error


def _check_no_rollback(error: BaseException) -> None:
    """psycopg.Rollback ends blocks in silence: the function would go on as if all had been done."""
    from psycopg import Rollback  # lazy: only with PostgreSQL

    if isinstance(error, Rollback):
        raise DefinitionError(
            "psycopg.Rollback has rolled back ctx.transaction(), so the execution is not complete: raise FailForGood, "
            "RetryIn or Snooze to say how it goes on, or use `with conn.transaction():` for a part of the block"
        ) from error


def _check_free(context: Context) -> None:
    if context.written is not None:
        raise DefinitionError("this execution has completed already: a job does so once")


def _report(context: Context, result: str) -> Finished | None:
    """None in a direct call, where there is no execution to end."""
    _check_free(context)
    return Finished(context.id, context.fence, Succeeded(result), job=context.job) if context.id else None
