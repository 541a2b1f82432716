"""A read that another thread may stop, because its client has left or its time is over."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class Watch:
    """The store says how to interrupt the statement that runs; `stop` does so, and may be called repeatedly.

    `statement_s` limits each statement on PostgreSQL, in case the process of the watching thread is stopped.
    """

    def __init__(self, statement_s: float | None = None) -> None:
        self.statement_s = statement_s
        self.is_stopped = False
        self._interrupt: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def stop(self) -> None:
        with self._lock:
            self.is_stopped = True
            if self._interrupt is not None:
                self._interrupt()

    @contextlib.contextmanager
    def by(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """While the block lasts, `stop` calls `interrupt`; never after it, when the connection may have another use."""
        with self._lock:
            self._interrupt = interrupt
        try:
            yield
        finally:
            with self._lock:
                self._interrupt = None
