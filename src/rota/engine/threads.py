"""Threads for user code: started when needed, never shared with the store.

A thread hands its result to the event loop with at most one wake-up for many results. Every call has a thread of its
own, so a call that never returns takes no thread from the others; its process is replaced.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from rota.executors.process.fork_guard import Original

T = TypeVar("T")


class _Call(msgspec.Struct, eq=False):
    """A function to call, and the future for its result."""

    function: Callable[[], Any]
    waiting: asyncio.Future[Any]
    variables: contextvars.Context = msgspec.field(default_factory=contextvars.copy_context)
    result: Any = None


class Threads:
    """Runs calls in threads. Implements `executors.attempt_state.Threads`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._done: deque[_Call] = deque()
        self._is_delivering = False
        """Whether `_deliver` will be called, and has not begun yet."""
        self._original = Original()
        self._threads = 0
        self._busy = 0

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """The result of `function`, which must not raise. Raises RuntimeError if no thread can be started."""
        call = _Call(function, self._loop.create_future())
        self._busy += 1
        if self._busy > self._threads:
            self._add_thread()
        self._calls.put(call)
        return call.waiting

    def close(self) -> None:
        for _ in range(self._threads):
            self._calls.put(None)

    def _add_thread(self) -> None:
        try:
            threading.Thread(target=self._serve, name="rota-job", daemon=True).start()
        except RuntimeError:
            if not self._threads:
                self._busy -= 1
                raise
            # The system gives us no more threads now: the call waits for one of ours.
            return
        self._threads += 1

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call.result = call.variables.run(call.function)
            self._original.end_copy()
            self._done.append(call)
            if not self._is_delivering:
                self._is_delivering = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:
                    return  # The event loop is closed: this process is on its way out.

    def _deliver(self) -> None:
        self._is_delivering = False  # Before the first is taken: a thread that adds one later sees this.
        while self._done:
            call = self._done.popleft()
            self._busy -= 1
            if not call.waiting.done():  # It is if the worker was closed.
                call.waiting.set_result(call.result)
