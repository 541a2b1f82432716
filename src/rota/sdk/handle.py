"""A handle on one execution: its status, its result, its end."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

import msgspec

from rota.domain import duration
from rota.domain.duration import Duration
from rota.domain.errors import (
    DefinitionError,
    ExecutionCancelled,
    ExecutionError,
    ExecutionFailed,
    ExecutionSkipped,
    NotFinished,
    UnknownExecution,
)
from rota.domain.status import Status
from rota.sdk.client import Client
from rota.store.reader import Ending
from rota.views.attempt import Attempt
from rota.views.execution import ExecutionDetail
from rota.views.stored_json import decoded, error_text

T = TypeVar("T")
_ENDED: dict[Status, tuple[type[ExecutionError], str]] = {
    Status.FAILED: (ExecutionFailed, "failed"),
    Status.CANCELLED: (ExecutionCancelled, "was cancelled"),
    Status.SKIPPED: (ExecutionSkipped, "was skipped"),
}


class ResultTypes(dict[tuple[str, str], Any]):
    """The types of results by app and job, for a handle that learns from the ending which job it is of."""


class Handle(Generic[T]):
    """An execution, by its id."""

    __slots__ = ("_client", "_job", "_result_type", "created", "id")
    _noun = "execution"

    def __init__(
        self,
        client: Client,
        id: str,
        result_type: Any = Any,
        *,
        created: bool = True,
        job: tuple[str, str] | None = None,
    ) -> None:
        self._client = client
        self._result_type = result_type
        self._job = job
        """The app and job that the execution must belong to; None if any."""
        self.id = id
        self.created = created
        """False if the key belonged to an execution that was there before."""

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def status(self) -> Status:
        return self._client.status(self.id)

    def info(self) -> ExecutionDetail:
        """Everything that is known of the execution."""
        found = self._client.execution(self.id)
        self._check_job(found.app, found.job)
        return found

    def attempts(self) -> list[Attempt]:
        """Every attempt that has ended, each with its error, worker and times."""
        return self._client.attempts(self.id)

    def cancel(self) -> Status:
        """Cancels at once, or asks a running execution to stop; returns the status that it has now."""
        return self._client.cancel(self.id)

    def result(self, timeout: Duration | None = None) -> T:
        """Waits for the end and returns the result; raises if there is none, or `NotFinished` after the timeout."""
        timeout_s = None if timeout is None else duration.seconds(timeout, "timeout")
        return self._outcome(self._client.wait(self.id, timeout_s) or self.status(), timeout_s)

    async def astatus(self) -> Status:
        """`status`, without blocking the event loop."""
        return await asyncio.to_thread(self.status)

    async def ainfo(self) -> ExecutionDetail:
        """`info`, without blocking the event loop."""
        return await asyncio.to_thread(self.info)

    async def aattempts(self) -> list[Attempt]:
        """`attempts`, without blocking the event loop."""
        return await asyncio.to_thread(self.attempts)

    async def acancel(self) -> Status:
        """`cancel`, without blocking the event loop."""
        return await asyncio.to_thread(self.cancel)

    async def aresult(self, timeout: Duration | None = None) -> T:
        """`result`, without blocking the event loop."""
        timeout_s = None if timeout is None else duration.seconds(timeout, "timeout")
        return self._outcome(await self._client.await_end(self.id, timeout_s) or await self.astatus(), timeout_s)

    def _outcome(self, ending: Ending | Status, timeout_s: float | None) -> T:
        if isinstance(ending, Status):
            raise NotFinished(f"{self._noun} {self.id} is {ending}{_after(timeout_s)}; it continues")
        self._check_job(ending.app, ending.job)
        if ending.status is Status.SUCCESS:
            return self._decoded(ending)
        raise _without_result(f"{self._noun} {self.id}", self.id, ending)

    def _check_job(self, app: str, job: str) -> None:
        if self._job is not None and self._job != (app, job):
            raise UnknownExecution(f"{self.id} is an execution of {app}.{job}, not of {'.'.join(self._job)}")

    def _decoded(self, ending: Ending) -> T:
        kind, text = self._result_type, ending.result or "null"
        if isinstance(kind, ResultTypes):
            kind = kind.get((ending.app, ending.job), Any)
        try:
            return msgspec.json.decode(text, type=kind)  # type: ignore[no-any-return]
        except msgspec.ValidationError:
            # The function returned another type than it announced; its value is still the result.
            return msgspec.json.decode(text)  # type: ignore[no-any-return]


def handle_on(client: Client, id: str, result_type: Any, job: tuple[str, str] | None = None) -> Handle[Any]:
    """A handle on an execution whose id is known; `job`: only if it is an execution of that app and job."""
    if not isinstance(id, str):
        raise DefinitionError(f"the id of an execution is a text, not {id!r}")
    return Handle(client, id, result_type, job=job)


def _after(timeout_s: float | None) -> str:
    if timeout_s is None:
        return ""
    return f" after {timeout_s:g} s" if timeout_s < 60 else f" after {duration.words(timeout_s)}"


def _without_result(named: str, id: str, ending: Ending) -> ExecutionError:
    kind, verb = _ENDED[ending.status]
    error = decoded(ending.error)
    message = error_text(error)
    why = "" if ending.reason == ending.status else f" ({ending.reason})"
    return kind(
        f"{named} {verb}{why}" + (f": {message}" if message else ""),
        id=id,
        job=ending.job,
        reason=ending.reason,
        attempts=ending.attempts,
        error_type=error.get("type") if isinstance(error, dict) else None,
        error_message=message,
    )
