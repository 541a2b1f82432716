"""Threads for user code: started when needed, never shared with the store.

A thread hands its outcome to the event loop with at most one wake-up for many outcomes. A thread that does not come
back is written off: it no longer counts, and its process is due for replacement.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any

from rota.executors.forked import Original

Call = Callable[[], Any]


class Threads:
    """Runs calls in up to `most` threads; `done(result)` is called on the event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._calls: queue.SimpleQueue[tuple[Call, Callable[[Any], None]] | None] = queue.SimpleQueue()
        self._results: list[tuple[Callable[[Any], None], Any]] = []
        self._lock = threading.Lock()
        self._original = Original()
        self._threads = 0
        self._busy = 0

    def start(self, call: Call, done: Callable[[Any], None]) -> None:
        self._busy += 1
        if self._busy > self._threads and self._threads < self._most:
            self._add_thread()
        self._calls.put((call, done))

    def write_off(self) -> None:
        """One call will not come back; its thread may be replaced."""
        self._most += 1

    def close(self) -> None:
        for _ in range(self._threads):
            self._calls.put(None)

    def _add_thread(self) -> None:
        try:
            threading.Thread(target=self._serve, name="rota-job", daemon=True).start()
        except RuntimeError:
            if not self._threads:
                raise
            # The system gives us no more threads now: the call waits for one that we have.
            return
        self._threads += 1

    def _serve(self) -> None:
        while (item := self._calls.get()) is not None:
            call, done = item
            result = call()
            self._original.end_copy()
            with self._lock:
                self._results.append((done, result))
                first = len(self._results) == 1
            if first:
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:
                    return  # The event loop is closed: this process is on its way out.

    def _deliver(self) -> None:
        with self._lock:
            results, self._results = self._results, []
        for done, result in results:
            self._busy -= 1
            done(result)
