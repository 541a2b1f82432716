"""From the loops' async world to the store's threads: one hop per operation, never per statement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from rota.store.port import Store, Tx, View

P = ParamSpec("P")
T = TypeVar("T")


class Bridge(Protocol):
    """How loops reach the store. The simulator has one of its own, which fails and delays calls."""

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...


class StoreBridge:
    """Operations go to the store's writer; reads run in two threads of their own, apart from user code's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="rota-read")

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self._store.submit(op, *args, **kwargs))

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = partial(self._store.read, query, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
