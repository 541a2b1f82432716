"""A handle on one execution: its status, its result, its end."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

import msgspec

from rota.domain.errors import (
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionSkipped,
    NotFinished,
)
from rota.domain.status import Status
from rota.sdk.client import Client
from rota.store.reader import AttemptRow, Ending, ExecutionRow

T = TypeVar("T")


class Handle(Generic[T]):
    """An execution, by its id."""

    __slots__ = ("_client", "_result_type", "created", "id")

    def __init__(self, client: Client, id: str, result_type: Any = Any, *, created: bool = True) -> None:
        self._client = client
        self._result_type = result_type
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

    def info(self) -> ExecutionRow:
        """Everything that is known of the execution itself."""
        return self._client.execution(self.id)

    def attempts(self) -> list[AttemptRow]:
        """Every attempt so far, each with its error, worker and times."""
        return self._client.attempts(self.id)

    def cancel(self) -> Status:
        """Cancels at once, or asks a running execution to stop; returns the status that it has now."""
        return self._client.cancel(self.id)

    def result(self, timeout: float | None = None) -> T:
        """Waits for the end and returns the result; raises if there is none. `timeout` is in seconds."""
        return self._outcome(self._client.wait(self.id, timeout) or self.status(), timeout)

    async def astatus(self) -> Status:
        return await asyncio.to_thread(self.status)

    async def acancel(self) -> Status:
        return await asyncio.to_thread(self.cancel)

    async def aresult(self, timeout: float | None = None) -> T:
        """`result`, without blocking the event loop."""
        return self._outcome(await self._client.await_end(self.id, timeout) or await self.astatus(), timeout)

    def _outcome(self, ending: Ending | Status, timeout: float | None) -> T:
        if isinstance(ending, Status):
            raise NotFinished(f"execution {self.id} is {ending} after {timeout:g} s; it continues")
        if ending.status is Status.SUCCESS:
            return self._decoded(ending.result or "null")
        if ending.status is Status.CANCELLED:
            raise ExecutionCancelled(f"execution {self.id} was cancelled ({ending.reason})")
        if ending.status is Status.SKIPPED:
            raise ExecutionSkipped(f"execution {self.id} was skipped ({ending.reason})")
        error = msgspec.json.decode(ending.error) if ending.error else {}
        what = f"{error['type']}: {error['message']}" if error else ending.reason
        raise ExecutionFailed(f"execution {self.id} failed ({ending.reason}): {what}")

    def _decoded(self, text: str) -> T:
        try:
            return msgspec.json.decode(text, type=self._result_type)  # type: ignore[no-any-return]
        except msgspec.ValidationError:
            # The function returned another type than it announced; its value is still the result.
            return msgspec.json.decode(text)  # type: ignore[no-any-return]
