"""A handle on one execution: its status, its result, its end."""

from __future__ import annotations

import asyncio
import select
from typing import Any, Generic, TypeVar

import msgspec

from rota.domain.errors import (
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionSkipped,
    NotFinished,
)
from rota.domain.status import Status
from rota.ops import control
from rota.sdk.connection import Connection
from rota.store import reader
from rota.store.hints import Ended, Listener, Wanted
from rota.store.reader import AttemptRow, Ending, ExecutionRow

T = TypeVar("T")
POLL_S = 0.5


class Handle(Generic[T]):
    """An execution, by its id."""

    __slots__ = ("_connection", "_result_type", "created", "id")

    def __init__(self, connection: Connection, id: str, result_type: Any = Any, *, created: bool = True) -> None:
        self._connection = connection
        self._result_type = result_type
        self.id = id
        self.created = created
        """False if a key gave an execution back that was there before."""

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def status(self) -> Status:
        return self._connection.store().read(reader.status, self._connection.settings.namespace, self.id)

    def info(self) -> ExecutionRow:
        """Everything that is known of the execution itself."""
        return self._connection.store().read(reader.execution, self._connection.settings.namespace, self.id)

    def attempts(self) -> list[AttemptRow]:
        """Every attempt so far, each with its error, worker and times."""
        return self._connection.store().read(reader.attempts, self._connection.settings.namespace, self.id)

    def cancel(self) -> Status:
        """Cancels at once, or asks a running execution to stop; returns the status that it has now."""
        settings = self._connection.settings
        return self._connection.store().transact(control.cancel, settings.namespace, self.id, "sdk")

    def result(self, timeout: float | None = None) -> T:
        """Waits for the end and returns the result; raises if there is none. `timeout` is in seconds."""
        ending = self._ending()
        if ending is None:
            ending = self._wait(timeout)
        return self._outcome(ending)

    async def astatus(self) -> Status:
        return await asyncio.to_thread(self.status)

    async def acancel(self) -> Status:
        return await asyncio.to_thread(self.cancel)

    async def aresult(self, timeout: float | None = None) -> T:
        """`result`, without blocking the event loop."""
        ending = await asyncio.to_thread(self._ending)
        if ending is None:
            ending = await self._await_end(timeout)
        return self._outcome(ending)

    def _ending(self) -> Ending | None:
        return self._connection.store().read(reader.ending, self._connection.settings.namespace, self.id)

    def _wait(self, timeout: float | None) -> Ending:
        clock = self._connection.clock
        give_up_at = None if timeout is None else clock.monotonic() + timeout
        bus = self._connection.store().bus
        listener = bus.listen(Ended)
        bus.send([Wanted((self.id,))])
        try:
            while (ending := self._ending()) is None:
                left = POLL_S if give_up_at is None else min(POLL_S, give_up_at - clock.monotonic())
                if left <= 0:
                    raise self._not_finished(timeout)
                self._listen(listener, clock.monotonic() + left)
            return ending
        finally:
            listener.close()

    def _listen(self, listener: Listener, until: float) -> None:
        """Sleeps until a hint names this execution, or until it is time to look anyway."""
        clock = self._connection.clock
        while (left := until - clock.monotonic()) > 0:
            readable, _, _ = select.select([listener.fileno()], [], [], left)
            if readable and self._is_named(listener):
                return

    def _is_named(self, listener: Listener) -> bool:
        return any(isinstance(hint, Ended) and self.id in hint.ids for hint in listener.take())

    async def _await_end(self, timeout: float | None) -> Ending:
        loop = asyncio.get_running_loop()
        bus = self._connection.store().bus
        listener = bus.listen(Ended)
        bus.send([Wanted((self.id,))])
        named = asyncio.Event()
        loop.add_reader(listener.fileno(), lambda: named.set() if self._is_named(listener) else None)
        try:
            async with asyncio.timeout(timeout):
                while (ending := await asyncio.to_thread(self._ending)) is None:
                    try:
                        async with asyncio.timeout(POLL_S):
                            await named.wait()
                    except TimeoutError:
                        pass
                    named.clear()
                return ending
        except TimeoutError:
            raise self._not_finished(timeout) from None
        finally:
            loop.remove_reader(listener.fileno())
            listener.close()

    def _not_finished(self, timeout: float | None) -> NotFinished:
        return NotFinished(f"execution {self.id} is {self.status()} after {timeout:g} s; it goes on")

    def _outcome(self, ending: Ending) -> T:
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
            # The function did not return what it announced; what it did return is still the result.
            return msgspec.json.decode(text)  # type: ignore[no-any-return]
