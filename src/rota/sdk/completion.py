"""Complete in a transaction of the job's own: its effect and its outcome are committed together, or neither is.

The outcome is written just before the COMMIT, under the attempt's fence. An attempt that no longer counts is refused
there, and its effect is rolled back. When the COMMIT got no answer, the database is asked how it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rota.clock import SystemClock
from rota.domain.errors import CommitUnknown, DefinitionError, StoreUnavailable
from rota.domain.outcome import Succeeded
from rota.executors.context import Context
from rota.ops import finish
from rota.ops.finish import Finished
from rota.sdk import transaction
from rota.sdk.connection import Connection
from rota.sdk.transaction import Caller

if TYPE_CHECKING:
    import psycopg

    from rota.sdk.pool import AsyncPool, Pool

PAUSE_S = 0.05
_machine = SystemClock()  # For waiting, also where a test has a clock of its own.


class JobCompletions:
    """Implements `rota.executors.context.Completions` for the jobs of one app."""

    def __init__(self, link: Connection) -> None:
        self.link = link
        self.most_bytes = link.settings.max_payload_bytes
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._async_pool: AsyncPool | None = None
        self._open: weakref.WeakKeyDictionary[Any, _Transaction] = weakref.WeakKeyDictionary()

    def transaction(self, context: Context) -> _Transaction:
        return _Transaction(self, context)

    def complete(self, context: Context, connection: Any, result: str) -> None:
        if (ours := self._open.get(connection)) is not None:
            ours.result = result
        else:
            self.write(context, connection, result)

    async def acomplete(self, context: Context, connection: Any, result: str) -> None:
        if (ours := self._open.get(connection)) is not None:
            ours.result = result
        else:
            await self.awrite(context, connection, result)

    def write(self, context: Context, connection: Any, result: str) -> None:
        """Writes the outcome in the transaction of `connection`."""
        if (report := _report(context, result)) is not None:
            context.written = result
            try:
                transaction.transact(self.link, Caller(connection, ends=True), finish.complete, report)
            except BaseException:
                context.written = None
                raise

    async def awrite(self, context: Context, connection: Any, result: str) -> None:
        if (report := _report(context, result)) is not None:
            context.written = result
            try:
                await transaction.atransact(self.link, Caller(connection, ends=True), finish.complete, report)
            except BaseException:
                context.written = None
                raise

    def has_landed(self, context: Context) -> bool:
        """How a COMMIT ended that got no answer. Raises CommitUnknown if nobody can be asked."""
        give_up_at = _machine.monotonic() + self.link.settings.busy_s
        pause = threading.Event()
        problem = "a transaction is still open that may commit it"
        while _machine.monotonic() < give_up_at:
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

    def opened(self, connection: Any, block: _Transaction) -> None:
        self._open[connection] = block
        transaction.after_commit[connection] = []

    def closed(self, connection: Any) -> list[Callable[[], None]]:
        """Returns what was to be done after the commit."""
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
        _check_free(self._context)
        transaction.known(self._completions.link)  # Refuses other databases before a connection is made.
        self._connection, self._block = self._completions.pool().begin()
        self._completions.opened(self._connection, self)
        return self._connection  # type: ignore[no-any-return]

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is None:
            try:
                self._completions.write(self._context, self._connection, self.result)
            except BaseException as refused:
                self._leave(type(refused), refused, refused.__traceback__)
                raise
        return self._leave(kind, error, trace)

    def _leave(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        pool, connection = self._completions.pool(), self._connection
        hooks = self._completions.closed(connection)
        try:
            swallowed = bool(self._block.__exit__(kind, error, trace))
        except BaseException as lost:
            broken = pool.drop(connection)
            if error is not None:
                return False  # A transaction that cannot even be rolled back is not committed.
            if self._is_refused(lost, broken) or not self._completions.has_landed(self._context):
                self._context.written = None
                raise
            swallowed = False
        else:
            pool.give(connection)
        self._after(error, hooks)
        return swallowed

    async def __aenter__(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        _check_free(self._context)
        await asyncio.to_thread(transaction.known, self._completions.link)
        self._connection, self._block = await self._completions.async_pool().begin()
        self._completions.opened(self._connection, self)
        return self._connection  # type: ignore[no-any-return]

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is None:
            try:
                await self._completions.awrite(self._context, self._connection, self.result)
            except BaseException as refused:
                await self._aleave(type(refused), refused, refused.__traceback__)
                raise
        return await self._aleave(kind, error, trace)

    async def _aleave(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        pool, connection = self._completions.async_pool(), self._connection
        hooks = self._completions.closed(connection)
        try:
            swallowed = bool(await self._block.__aexit__(kind, error, trace))
        except BaseException as lost:
            broken = await pool.drop(connection)
            if isinstance(lost, asyncio.CancelledError):
                raise  # Stopped in the middle of the COMMIT: the report will show what became of it.
            if error is not None:
                return False
            if self._is_refused(lost, broken) or not await asyncio.to_thread(
                self._completions.has_landed, self._context
            ):
                self._context.written = None
                raise
            swallowed = False
        else:
            await pool.give(connection)
        self._after(error, hooks)
        return swallowed

    def _is_refused(self, lost: BaseException, broken: bool) -> bool:
        """Whether the server said no to the COMMIT, as it does for a constraint that is checked at the end."""
        return not broken or self._context.written is None or not isinstance(lost, Exception)

    def _after(self, error: BaseException | None, hooks: list[Callable[[], None]]) -> None:
        if error is None:
            for hook in hooks:
                with contextlib.suppress(Exception):
                    hook()


def _check_free(context: Context) -> None:
    if context.written is not None:
        raise DefinitionError("this execution has completed already: a job does so once")


def _report(context: Context, result: str) -> Finished | None:
    """None in a direct call, where there is no execution to end."""
    _check_free(context)
    return Finished(context.id, context.fence, Succeeded(result), job=context.job) if context.id else None
