"""One call of an operation on its way to the database, and how its caller gets the answer.

A caller that does not wait holds a future. One that waits is answered through a bare lock, which costs a fraction of a
future: with many threads that enqueue, the answers are most of the cost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rota.clock import MACHINE
from rota.store.hints import Hint
from rota.store.port import Submitted, declared

MOST_ROWS = 10_000
"""No call is added to a group that has this many rows: on SQLite all other writers wait for its transaction."""
LARGE = 1_000
"""A bulk operation with fewer rows takes some hundredths of a second: heartbeats can wait for several of them."""
FIRST_PAUSE_S = 0.01
LONGEST_PAUSE_S = 0.2


def rows_of(args: tuple[Any, ...]) -> int:
    """Roughly the number of rows that an operation writes."""
    rows = 0
    for each in args:
        if type(each) is list:
            rows += len(each)
    return rows


def is_large(op: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether other writers must not wait for several operations like this in a row."""
    return rows_of(args) >= LARGE and declared(op).is_large


class PendingCall:
    """A call and its outcome. Either the store begins it or the caller takes it back, never both."""

    __slots__ = (
        "_begun",
        "_done",
        "args",
        "asked_at",
        "error",
        "future",
        "hints",
        "is_begun",
        "is_ended",
        "is_large",
        "kwargs",
        "not_before",
        "op",
        "result",
        "rows",
        "tries",
    )

    def __init__(
        self,
        op: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        future: Submitted[Any] | None = None,
    ) -> None:
        self.op, self.args, self.kwargs, self.future = op, args, kwargs, future
        self.rows = rows_of(args)
        self.is_large = self.rows >= LARGE and declared(op).is_large
        self.asked_at = MACHINE.monotonic()
        self.result: Any = None
        self.error: BaseException | None = None
        self.hints: list[Hint] = []
        self.is_begun = self.is_ended = False
        self.not_before, self.tries = 0.0, 0
        self._begun, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()

    def begin(self) -> bool:
        """For the store, before it reads the database's clock: False if the caller has taken the call back."""
        if self.future is not None:
            self.future.waited_s = MACHINE.monotonic() - self.asked_at
            self.is_begun = self.future.set_running_or_notify_cancel()
        else:
            self.is_begun = self._begun.acquire(blocking=False)
        return self.is_begun

    def end(self) -> None:
        """For the store, after the commit: answers the caller."""
        self.is_ended = True
        if self.future is None:
            self._done.release()
        elif self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)

    def postpone(self) -> None:
        """For the store: sets the time of the next try, with an exponential back-off."""
        self.not_before = MACHINE.monotonic() + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self.tries, 10))
        self.tries += 1
        if self.future is not None:
            self.future.is_postponed = True

    def wait(self, patience_s: float) -> bool:
        """For a caller without a future: False if the time is over and the call was taken back."""
        if self._done.acquire(timeout=patience_s):
            return True
        if self._begun.acquire(blocking=False):
            return False
        # The store has begun it, so the caller must wait for the outcome.
        return self._done.acquire()

    def answer(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result
