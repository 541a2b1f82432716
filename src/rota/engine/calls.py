"""From the event loop to the store's threads: one hop per operation, never per statement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from rota.store.port import Store, Tx, View

P = ParamSpec("P")
T = TypeVar("T")


class Calls(Protocol):
    """Carries out operations and queries without blocking the event loop. The simulation's calls fail and are late."""

    async def timed(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
        """The result, and for how many seconds the operation certainly waited before the database's clock was read."""

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...


class StoreCalls:
    """Operations go to the store's writer; reads run in two threads of their own, apart from user code's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="rota-read")

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return (await self.timed(op, *args, **kwargs))[0]

    async def timed(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
        future = self._store.submit(op, *args, **kwargs)
        if self._store.patience_s is None:
            return await asyncio.wrap_future(future), future.waited_s
        # Without a limit, a process that keeps the lock of the database would silently stop every loop.
        timer = asyncio.get_running_loop().call_later(self._store.patience_s, future.cancel)
        try:
            return await asyncio.wrap_future(future), future.waited_s
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                raise self._store.too_busy() from None
            raise
        finally:
            timer.cancel()

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = partial(self._store.read, query, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
