"""The context of an attempt: what its function can ask and report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec

from rota.clock import MACHINE
from rota.domain import headers, payload
from rota.domain.claim import Claim
from rota.domain.errors import DefinitionError, RotaError, Snooze
from rota.domain.instant import MICROSECONDS
from rota.domain.note import State
from rota.domain.usage import Usage
from rota.executors import echo

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
H = TypeVar("H", covariant=True)
MOST_NOTE = 1000
MOST_CHECKPOINT = 1024 * 1024
_monotonic = MACHINE.monotonic


def _nothing() -> None:
    """The default of `Context.begun`."""


class JobTransaction(Protocol):
    """What `ctx.transaction()` returns: for `with` in sync jobs, for `async with` in async ones."""

    def __enter__(self) -> psycopg.Connection[tuple[Any, ...]]: ...

    def __exit__(self, *raised: Any) -> Literal[False]: ...

    async def __aenter__(self) -> psycopg.AsyncConnection[tuple[Any, ...]]: ...

    async def __aexit__(self, *raised: Any) -> Literal[False]: ...


class Completions(Protocol):
    """Writes an attempt's outcome in a transaction of the job's own."""

    most_bytes: int

    def transaction(self, context: Context) -> JobTransaction: ...

    def complete(self, context: Context, connection: Any, result: str) -> None: ...

    async def acomplete(self, context: Context, connection: Any, result: str) -> None: ...


class Child(Protocol[H]):
    """A job that another job enqueues."""

    def child_of(self, parent: str, fence: int, headers: Mapping[str, str]) -> Child[H]: ...

    def enqueue(self, *args: Any, **kwargs: Any) -> H: ...

    async def aenqueue(self, *args: Any, **kwargs: Any) -> H: ...


class Notes(Protocol):
    """Records log lines, progress and checkpoints of attempts, from any thread. Never waits for the database."""

    def line(self, id: str, fence: int, stream: str, text: str) -> None: ...

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None: ...

    def state(self, state: State) -> None: ...


class Threads(Protocol):
    """The worker's threads, in which plain functions run."""

    async def run(self, call: Callable[[], T]) -> T: ...


class SliceOver(Snooze):
    """Raised at a checkpoint when the time slice is used up. Do not catch it: the next turn continues from there."""

    def __init__(self, delay: float | str = 0, message: str = "its time slice is used up") -> None:
        super().__init__(delay, message)


class ResultRefused(Exception):
    """The result that a job completes with cannot be stored."""


class Context:
    """Given to a job's function that has a parameter annotated `rota.Context`."""

    __slots__ = (
        "_claim",
        "_completions",
        "_waiter",
        "begun",
        "deadline",
        "is_stopping",
        "notes",
        "saw_stop",
        "slice_until",
        "spoke",
        "threads",
        "told",
        "told_at",
        "usage",
        "written",
    )

    def __init__(self, claim: Claim, deadline: int | None, completions: Completions | None = None) -> None:
        self._claim = claim
        self._completions = completions
        self._waiter: threading.Event | None = None
        self.is_stopping = False
        """Whether the attempt was asked to stop. A job asks `cancelled`, which remembers that the job has seen it."""
        self.threads: Threads | None = None
        """Where a plain function runs; None if it is called on the spot, as in tests."""
        self.deadline = deadline
        """When this attempt times out (microseconds since 1970 UTC), if ever."""
        self.begun: Callable[[], None] = _nothing
        """An executor that had to wait calls this when the work begins: the timeout runs from then on."""
        self.saw_stop = False
        """Whether the function has seen, by `cancelled` or `wait_cancelled`, that it should stop."""
        self.written: str | None = None
        """The result, once it was written in a transaction of the job's own, which may not be committed yet."""
        self.usage: Usage | None = None
        """Processor time, memory and exit code, if the attempt has a process of its own; set by its executor."""
        self.slice_until: float | None = None
        """By the monotonic clock: a checkpoint after that ends the attempt's turn."""
        self.spoke = False
        """Whether the attempt has written anything to its log."""
        self.told = 0
        """How often the attempt has reported progress or a checkpoint."""
        self.told_at: float | None = None
        """When it last did, by the monotonic clock."""
        self.notes: Notes | None = None
        """Records log lines, progress and checkpoints; None in a direct call and after the end."""

    @property
    def id(self) -> str:
        """The execution's id: the same in every attempt."""
        return self._claim.id

    @property
    def job(self) -> str:
        return self._claim.job

    @property
    def fence(self) -> int:
        """Counts the starts of this execution. Pass it to outside systems that can refuse an older one."""
        return self._claim.fence

    @property
    def attempt(self) -> int:
        """Which try this is, starting at 1; starts that were given back or crashed are not counted."""
        return self._claim.attempts + 1

    @property
    def scheduled_for(self) -> int:
        """The instant for which the execution was asked, or the tick of its schedule (microseconds since 1970 UTC)."""
        return self._claim.run_at if self._claim.tick is None else self._claim.tick

    @property
    def late_by(self) -> float:
        """How many seconds after that instant this attempt has started."""
        return max(0, self._claim.started_at - self.scheduled_for) / MICROSECONDS

    @property
    def catch_up(self) -> bool:
        """Whether the tick of its schedule was missed, and is made up for now."""
        return bool(self._claim.catch_up)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that the execution was enqueued with. Executions that it enqueues by `ctx` inherit them."""
        return headers.decode(self._claim.headers)

    @property
    def upstream(self) -> dict[str, str]:
        """The ids of the executions whose ends started this one, by job; with the app before jobs of other apps."""
        text = self._claim.upstream
        return msgspec.json.decode(text, type=dict[str, str]) if text else {}

    @property
    def cancelled(self) -> bool:
        """Whether the attempt was asked to stop: by a cancel, a timeout or a shutdown. Sync jobs should look.

        A job that has seen this and returns counts as stopped, not as a success.
        """
        self.saw_stop = self.saw_stop or self.is_stopping
        return self.is_stopping

    def wait_cancelled(self, timeout_s: float) -> bool:
        """Sleeps up to `timeout_s`, less if asked to stop; returns whether it was. For sync jobs."""
        self._waiter = self._waiter or threading.Event()
        if not self.is_stopping:
            # Asked between these two lines, the other thread finds the waiter and sets it.
            self._waiter.wait(timeout_s)
        return self.cancelled

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Reports how far the work is, for `rota show`. Cheap: of many reports within a moment the last one is kept."""
        for name, value in (("done", done), ("total", total)):
            if value is not None and not (isinstance(value, int | float) and isfinite(value)):
                raise DefinitionError(f"progress: {name} must be a number, not {value!r}")
        words = None if note is None else payload.clean(str(note), MOST_NOTE)
        self._tell(State(self.id, self.fence, 0, float(done), None if total is None else float(total), words))

    def checkpoint(self, state: Any) -> None:
        """Keeps `state` (anything JSON can carry) for the next attempt, which finds it in `restored`.

        It is written within a moment, and at the latest before this attempt's end is. A job that has used up its time
        slice stops here, and continues from `state` when it is its turn again; no attempt is charged.
        """
        text = payload.encode(state, "the checkpoint", MOST_CHECKPOINT)
        self._tell(State(self.id, self.fence, 0, checkpoint=text))
        if self.slice_until is not None and _monotonic() >= self.slice_until:
            raise SliceOver

    @property
    def restored(self) -> Any:
        """The last checkpoint of an earlier attempt; None if there is none."""
        text = self._claim.checkpoint
        return None if text is None else msgspec.json.decode(text)

    def log(self, message: object) -> None:
        """Adds lines to this attempt's log, which `rota logs` shows. Output of `print` and `logging` is in it too."""
        self.write_lines("log", str(message).splitlines())

    def write_log(self, stream: str, text: str) -> None:
        """Adds one line of `stream` to the log."""
        if (notes := self.notes) is not None:
            self.spoke = True
            claim = self._claim
            notes.line(claim.id, claim.fence, stream, text)

    def write_output(self, stream: str, texts: list[str]) -> None:
        """Adds lines that a process of the attempt wrote to its log, and to the worker's standard error."""
        echo.show(self._claim.job, self._claim.id, texts)
        self.write_lines(stream, texts)

    def write_lines(self, stream: str, texts: list[str]) -> None:
        """Adds several lines of `stream` to the log. The caller must not change the list afterwards."""
        if texts and (notes := self.notes) is not None:
            self.spoke = True
            claim = self._claim
            notes.lines(claim.id, claim.fence, stream, texts)

    def enqueue(self, job: Child[T], *args: Any, **kwargs: Any) -> T:
        """Enqueues an execution that has this one as its parent, only if this attempt is still the one that counts.

        `job` may carry options: `ctx.enqueue(send.options(delay="5m"), to)`. Raises LeaseLost if another attempt has
        taken over. In a direct call of the function the new execution has no parent.
        """
        return self._child(job).enqueue(*args, **kwargs)

    async def aenqueue(self, job: Child[T], *args: Any, **kwargs: Any) -> T:
        """`enqueue`, without blocking the event loop."""
        return await self._child(job).aenqueue(*args, **kwargs)

    def transaction(self) -> JobTransaction:
        """A transaction on the app's PostgreSQL database that ends this execution when it commits.

        `with ctx.transaction() as conn:` gives a psycopg connection, `async with` an async one. The work on it and
        the success of this execution are committed together, or neither is. The result is what `complete` was given.
        """
        return self._known().transaction(self)

    def complete(self, connection: Any, result: T = None) -> T:  # type: ignore[assignment]
        """Ends this execution with `result` when the transaction of `connection` commits; returns the result.

        The connection is that of `transaction()`, or one of your own to the same database: psycopg's, SQLAlchemy's or
        Django's. Call it last. If the attempt is no longer the one that counts, this raises LeaseLost: roll back.
        """
        self._known().complete(self, connection, self._encoded(result))
        return result

    async def acomplete(self, connection: Any, result: T = None) -> T:  # type: ignore[assignment]
        """`complete`, for async connections."""
        await self._known().acomplete(self, connection, self._encoded(result))
        return result

    def _child(self, job: Child[T]) -> Child[T]:
        """In a direct call there is no execution that could be the parent."""
        return job.child_of(self.id, self.fence, self.headers) if self.id else job

    def _known(self) -> Completions:
        if self._completions is None:
            raise DefinitionError("a job completes in a transaction only in a worker, on PostgreSQL")
        return self._completions

    def _encoded(self, result: Any) -> str:
        try:
            return payload.encode(result, "the result", self._known().most_bytes)
        except RotaError as error:
            raise ResultRefused(str(error)) from None

    def begin_slice(self, seconds: float | None) -> None:
        self.slice_until = None if seconds is None else _monotonic() + seconds

    @property
    def silent_s(self) -> float | None:
        """How long ago the attempt last reported progress; None if it never has."""
        return None if self.told_at is None else _monotonic() - self.told_at

    def _tell(self, state: State) -> None:
        self.told += 1
        self.told_at = _monotonic()
        if (notes := self.notes) is not None:
            notes.state(state)

    def _ask_to_stop(self) -> None:
        self.is_stopping = True
        if self._waiter is not None:
            self._waiter.set()
