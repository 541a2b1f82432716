"""The context of an attempt: what its function can ask and report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from math import isfinite
from typing import Any, Protocol, TypeVar

import msgspec

from rota.domain import headers, payload
from rota.domain.duration import Duration, seconds
from rota.domain.errors import DefinitionError, RotaError, Snooze
from rota.domain.event import EventInfo, decode_info
from rota.domain.instant import moment
from rota.domain.note import State
from rota.domain.run_info import RunInfo
from rota.executors.attempt_state import AttemptState, Completions, JobTransaction

T = TypeVar("T")
H = TypeVar("H", covariant=True)
MOST_NOTE = 1000
MOST_CHECKPOINT = 1024 * 1024


class Child(Protocol[H]):
    """A job that another job enqueues."""

    def _child_of(self, parent: str, fence: int, headers: Mapping[str, str]) -> Child[H]: ...

    def enqueue(self, *args: Any, **kwargs: Any) -> H: ...

    async def aenqueue(self, *args: Any, **kwargs: Any) -> H: ...


class SliceOver(Snooze):
    """Raised at a checkpoint when the time slice is used up. Do not catch it: the next turn continues from there."""

    def __init__(self, delay: Duration = 0, message: str = "its time slice is used up") -> None:
        super().__init__(delay, message)


class ResultRefused(Exception):
    """The result that a job completes with cannot be stored."""


class Context:
    """Given to a job's function that has a parameter annotated `rota.Context`."""

    __slots__ = ("_attempt", "_claim")

    def __init__(self, attempt: AttemptState) -> None:
        self._attempt = attempt
        self._claim = attempt.claim

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
    def scheduled_for(self) -> datetime:
        """The instant for which the execution was asked, or the tick of its schedule, in UTC."""
        return moment(self._scheduled_at)

    @property
    def late_by(self) -> timedelta:
        """How long after that instant this attempt has started."""
        return timedelta(microseconds=max(0, self._claim.started_at - self._scheduled_at))

    @property
    def deadline(self) -> datetime | None:
        """When this attempt times out; None if it has no timeout."""
        at = self._attempt.deadline
        return None if at is None else moment(at)

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
    def run(self) -> RunInfo | None:
        """The run that this execution is a step of, with the name of the step; None if it is not a step."""
        return self._claim.run_info

    @property
    def event(self) -> EventInfo | None:
        """The event that started this execution: its id, name, subject and time; None if no event did."""
        text = self._claim.event
        return decode_info(text) if text else None

    @property
    def cancelled(self) -> bool:
        """Whether the attempt was asked to stop: by a cancel, a timeout or a shutdown. Sync jobs should look.

        A job that has seen this and returns counts as stopped, not as a success.
        """
        attempt = self._attempt
        attempt.saw_stop = attempt.saw_stop or attempt.is_stopping
        return attempt.is_stopping

    def wait_cancelled(self, timeout: Duration) -> bool:
        """Sleeps up to `timeout` (seconds, "10s" or a timedelta), less if asked to stop; returns whether it was.

        For sync jobs.
        """
        self._attempt.wait_for_stop(seconds(timeout, "wait_cancelled"))
        return self.cancelled

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Reports how far the work is, for `rota show`. Cheap: of many reports within a moment the last one is kept."""
        for name, value in (("done", done), ("total", total)):
            if value is not None and not (isinstance(value, int | float) and isfinite(value)):
                raise DefinitionError(f"progress: {name} must be a number, not {value!r}")
        words = None if note is None else payload.clean(str(note), MOST_NOTE)
        self._attempt.tell(State(self.id, self.fence, 0, float(done), None if total is None else float(total), words))

    def checkpoint(self, state: Any) -> None:
        """Keeps `state` (anything JSON can carry) for the next attempt, which finds it in `restored`.

        It is written within a moment, and at the latest before this attempt's end is. A job that has used up its time
        slice stops here, and continues from `state` when it is its turn again; no attempt is counted.
        """
        text = payload.encode(state, "the checkpoint", MOST_CHECKPOINT)
        self._attempt.tell(State(self.id, self.fence, 0, checkpoint=text))
        if self._attempt.is_slice_over:
            raise SliceOver

    @property
    def restored(self) -> Any:
        """The last checkpoint of an earlier attempt; None if there is none."""
        text = self._claim.checkpoint
        return None if text is None else msgspec.json.decode(text)

    def log(self, message: object) -> None:
        """Adds lines to this attempt's log, which `rota logs` shows. Output of `print` and `logging` is in it too."""
        self._attempt.write_lines("log", str(message).splitlines())

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
        return self._known().transaction(self._attempt)

    def complete(self, connection: Any, result: T = None) -> T:  # type: ignore[assignment]
        """Ends this execution with `result` when the transaction of `connection` commits; returns the result.

        The connection is that of `transaction()`, or one of your own to the same database: psycopg's, SQLAlchemy's or
        Django's. Call it last. If the attempt is no longer the one that counts, this raises LeaseLost: roll back.
        """
        self._known().complete(self._attempt, connection, self._encoded(result))
        return result

    async def acomplete(self, connection: Any, result: T = None) -> T:  # type: ignore[assignment]
        """`complete`, for async connections."""
        await self._known().acomplete(self._attempt, connection, self._encoded(result))
        return result

    @property
    def _scheduled_at(self) -> int:
        return self._claim.run_at if self._claim.tick is None else self._claim.tick

    def _child(self, job: Child[T]) -> Child[T]:
        """In a direct call there is no execution that could be the parent."""
        return job._child_of(self.id, self.fence, self.headers) if self.id else job

    def _known(self) -> Completions:
        if (completions := self._attempt.completions) is None:
            raise DefinitionError("a job completes in a transaction only in a worker, on PostgreSQL")
        return completions

    def _encoded(self, result: Any) -> str:
        try:
            return payload.encode(result, "the result", self._known().most_bytes)
        except RotaError as error:
            raise ResultRefused(str(error)) from None
