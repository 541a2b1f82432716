"""The state of an attempt in progress: what the engine and the executors share. A job's function sees a `Context`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec

from rota.clock import MACHINE
from rota.domain.claim import Claim
from rota.domain.note import State
from rota.domain.usage import Usage
from rota.executors import echo
from rota.executors.process.fork_guard import Original

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
_monotonic = MACHINE.monotonic


def _nothing() -> None:
    """The default of `AttemptState.begun`."""


class JobTransaction(Protocol):
    """The value of `ctx.transaction()`: for `with` in sync jobs, for `async with` in async ones."""

    def __enter__(self) -> psycopg.Connection[tuple[Any, ...]]: ...

    def __exit__(self, *raised: Any) -> Literal[False]: ...

    async def __aenter__(self) -> psycopg.AsyncConnection[tuple[Any, ...]]: ...

    async def __aexit__(self, *raised: Any) -> Literal[False]: ...


class Completions(Protocol):
    """Writes an attempt's outcome in a transaction of the job's own."""

    most_bytes: int

    def transaction(self, attempt: AttemptState) -> JobTransaction: ...

    def complete(self, attempt: AttemptState, connection: Any, result: str) -> None: ...

    async def acomplete(self, attempt: AttemptState, connection: Any, result: str) -> None: ...


class Notes(Protocol):
    """Records log lines, progress and checkpoints of attempts, from any thread. Never waits for the database."""

    def line(self, id: str, fence: int, stream: str, text: str) -> None: ...

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None: ...

    def state(self, state: State) -> None: ...


class Threads(Protocol):
    """The worker's threads, in which plain functions run."""

    def run(self, call: Callable[[], T]) -> asyncio.Future[T]: ...


class AttemptState(msgspec.Struct, eq=False):
    """One attempt in progress. The worker makes it, and passes it to `Executor.run`."""

    claim: Claim
    deadline: int | None
    """When this attempt times out (microseconds since 1970 UTC), if ever."""
    completions: Completions | None = None
    """For `ctx.transaction()` and `ctx.complete()`."""
    notes: Notes | None = None
    """Records log lines, progress and checkpoints; None in a direct call and after the end."""
    threads: Threads | None = None
    """Where a plain function runs; None if it is called on the spot, as in tests."""
    original: Original = msgspec.field(default_factory=Original)
    """The process in which the attempt was started."""
    begun: Callable[[], None] = _nothing
    """An executor that had to wait calls this when the work begins: the timeout runs from then on."""
    is_stopping: bool = False
    """Whether the attempt was asked to stop."""
    saw_stop: bool = False
    """Whether the function has seen, by `cancelled` or `wait_cancelled`, that it should stop."""
    written: str | None = None
    """The result, once it was written in a transaction of the job's own, which may not be committed yet."""
    usage: Usage | None = None
    """Processor time, memory and exit code, if the attempt has a process of its own; set by its executor."""
    slice_until: float | None = None
    """When the time slice ends, by the monotonic clock: a checkpoint after that ends the attempt."""
    spoke: bool = False
    """Whether the attempt has written anything to its log."""
    told: int = 0
    """How often the attempt has reported progress or a checkpoint."""
    told_at: float | None = None
    """When it last did, by the monotonic clock."""
    _waiter: threading.Event | None = None
    """Set when the attempt is asked to stop, for a function that waits for that."""

    def write_log(self, stream: str, text: str) -> None:
        """Adds one line of `stream` to the log."""
        if (notes := self.notes) is not None:
            self.spoke = True
            claim = self.claim
            notes.line(claim.id, claim.fence, stream, text)

    def write_lines(self, stream: str, texts: list[str]) -> None:
        """Adds several lines of `stream` to the log. The caller must not change the list afterwards."""
        if texts and (notes := self.notes) is not None:
            self.spoke = True
            claim = self.claim
            notes.lines(claim.id, claim.fence, stream, texts)

    def write_output(self, stream: str, texts: list[str]) -> None:
        """Adds lines that a process of the attempt wrote to its log, and to the worker's standard error."""
        echo.show(self.claim.job, self.claim.id, texts)
        self.write_lines(stream, texts)

    def tell(self, state: State) -> None:
        """Records progress or a checkpoint."""
        self.told += 1
        self.told_at = _monotonic()
        if (notes := self.notes) is not None:
            notes.state(state)

    @property
    def silent_s(self) -> float | None:
        """How long ago the attempt last reported progress; None if it never has."""
        return None if self.told_at is None else _monotonic() - self.told_at

    def begin_slice(self, seconds: float | None) -> None:
        self.slice_until = None if seconds is None else _monotonic() + seconds

    @property
    def is_slice_over(self) -> bool:
        return self.slice_until is not None and _monotonic() >= self.slice_until

    def ask_to_stop(self) -> None:
        self.is_stopping = True
        if self._waiter is not None:
            self._waiter.set()

    def wait_for_stop(self, timeout_s: float) -> None:
        """Sleeps up to `timeout_s`, less if the attempt is asked to stop."""
        self._waiter = self._waiter or threading.Event()
        if not self.is_stopping:
            # Asked between these two lines, the other thread finds the waiter and sets it.
            self._waiter.wait(timeout_s)
