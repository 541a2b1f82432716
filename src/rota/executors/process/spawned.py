"""A process as its spawner reports it: started or refused, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any

import msgspec

from rota.domain.usage import Usage
from rota.executors.process.started_processes import Refused


class ExitStatus(msgspec.Struct, frozen=True):
    """How a process ended, and what its whole tree cost.

    The peak is that of the largest process, or of the whole tree if a measurement found more. It is never below the few
    megabytes of the spawner itself.
    """

    exit_code: int | None = None
    signal: int | None = None
    cpu_s: float = 0.0
    peak_bytes: int = 0
    out_of_memory: bool = False
    error: str | None = None
    """Set if the spawner is gone, so that the exit status is not known."""

    @property
    def how(self) -> str:
        return f"was ended by {signal_name(self.signal)}" if self.signal else f"ended with exit code {self.exit_code}"

    @property
    def usage(self) -> Usage:
        name = None if self.signal is None else signal_name(self.signal)
        return Usage(self.cpu_s, self.peak_bytes, self.exit_code, name)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Answer(msgspec.Struct, frozen=True):
    """A spawner's message about one process: its pid, its exit status, or the step that failed with its errno."""

    id: int
    pid: int = 0
    ended: ExitStatus | None = None
    step: str = ""
    code: int = 0


decode = msgspec.json.Decoder(Answer).decode


class Spawned:
    """A process that was started."""

    def __init__(self, id: int, send: Callable[[dict[str, Any]], None]) -> None:
        """`send` sends a message to the spawner."""
        loop = asyncio.get_running_loop()
        self._id = id
        self._send = send
        self._started: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[ExitStatus] = loop.create_future()
        self.pid = 0

    def stop(self, grace_s: float) -> None:
        """Asks the whole tree to end, and kills it if that takes longer than the grace."""
        if not self._ended.done():
            self._send({"do": "stop", "id": self._id, "grace_s": grace_s})

    def kill(self) -> None:
        self.stop(0)

    async def wait(self) -> ExitStatus:
        """Waits until no process of the tree is left."""
        return await asyncio.shield(self._ended)

    async def wait_despite_cancels(self) -> ExitStatus:
        """`wait`, also if the waiting task is cancelled meanwhile."""
        await _wait_despite_cancels(self._ended)
        return self._ended.result()

    @property
    def has_ended(self) -> bool:
        return self._ended.done()

    async def wait_started(self) -> None:
        """Raises Refused if the process cannot be started. A cancel kills the process first."""
        try:
            await asyncio.shield(self._started)
        except asyncio.CancelledError:
            self.kill()
            await _wait_despite_cancels(self._ended)
            if not self._started.cancelled():
                self._started.exception()  # Retrieved, or asyncio would log it.
            raise

    def receive(self, answer: Answer) -> bool:
        """Returns whether this was the last answer."""
        if answer.pid:
            self.pid = answer.pid
            self._started.set_result(None)
        elif answer.ended is not None:
            self._ended.set_result(answer.ended)
        else:
            self._started.set_exception(Refused(answer.step, answer.code))
            self._ended.set_result(ExitStatus(error="it was not started"))
        return self._ended.done()

    def set_lost(self, error: str) -> None:
        """No answer will come. The process may have run, so it counts as started."""
        if not self._started.done():
            self._started.set_result(None)
        if not self._ended.done():
            self._ended.set_result(ExitStatus(signal=signal.SIGKILL, error=error))


async def _wait_despite_cancels(future: asyncio.Future[Any]) -> None:
    """Waits until `future` is done, also if the waiting task is cancelled meanwhile."""
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])
