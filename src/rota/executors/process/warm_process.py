"""The worker's side of a process that has loaded the app (`WarmProcess`), and the calls that this process runs one at
a time (`JobCall`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence

import msgspec

from rota.clock import MACHINE
from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.outcome import Failed, GivenBack
from rota.domain.status import Reason
from rota.domain.usage import Usage
from rota.executors.attempt_state import AttemptState
from rota.executors.process.connection import Answer, Call, Channel, LogLine, Message, NewState, Ready, Spent, Stop
from rota.executors.process.lines import Lines, last_of
from rota.executors.process.spawned import ExitStatus, Spawned
from rota.executors.process.spawner import Spawner

log = logging.getLogger("rota.engine")
GRACE_S = 10.0
START_S = 60.0
_reported_jobs: set[str] = set()
"""Jobs that were reported to leave something behind."""


class JobCall:
    """One call of a job's function: it waits for a process, is made there, and is answered."""

    __slots__ = ("answered", "attempt", "claim", "memory_bytes", "process", "slice_s")

    def __init__(self, claim: Claim, attempt: AttemptState, slice_s: float | None, memory_bytes: int | None) -> None:
        self.claim = claim
        self.attempt = attempt
        self.slice_s = slice_s
        self.memory_bytes = memory_bytes
        self.process: WarmProcess | None = None
        """The process that runs the call, once it has begun."""
        self.answered: asyncio.Future[Answer | GivenBack | Failed | None] = asyncio.get_running_loop().create_future()
        """None if the process ended without an answer; a GivenBack or a Failed if no process could be started."""


class WarmProcess:
    """Makes one call at a time. `free(self)` is called as soon as it can make the next."""

    def __init__(
        self,
        spawned: Spawned,
        outputs: Sequence[Lines],
        memory_bytes: int | None,
        free: Callable[[WarmProcess], None],
        own_spawner: Spawner | None = None,
    ) -> None:
        """`own_spawner` is closed with the process."""
        self.spawned = spawned
        self.memory_bytes = memory_bytes
        self.born_at = MACHINE.monotonic()
        self.jobs = 0
        self.fresh_bytes = 0
        """Its size before its first job."""
        self.spent = Spent()
        """The processor time and the size of the process before the running call."""
        self.leftover = ""
        """What the last call has left behind; if there is something, the process is not used again."""
        self._free = free
        self._own_spawner = own_spawner
        self._outputs = outputs
        self._call: JobCall | None = None
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Ready | None] = loop.create_future()
        self._is_disconnected: asyncio.Future[None] = loop.create_future()
        self._channel = Channel(self._receive, self._disconnected)

    async def wait_ready(self, end: socket.socket) -> str | Failed:
        """Waits until the app is loaded; returns the reason if it cannot be, empty otherwise.

        The reason is a Failed if another attempt would fail as well.
        """
        try:
            async with asyncio.timeout(START_S):
                await self._channel.open(end)
                ready = await self._ready
        except TimeoutError:
            return f"its app was not loaded within {START_S:g} s"
        if ready is not None:
            self.spent, self.fresh_bytes = ready.spent, ready.spent.rss_bytes
            is_too_large = not ready.error and self.fresh_bytes > (self.memory_bytes or self.fresh_bytes)
            return _too_large(self.fresh_bytes, self.memory_bytes) if is_too_large else ready.error
        ended = await self.spawned.wait()
        self._drain()
        if ended.out_of_memory:
            return _too_large(ended.peak_bytes, self.memory_bytes, self.last_lines())
        return "\n".join([f"its process {ended.how} while the app was loaded", *self.last_lines().splitlines()])

    def begin(self, call: JobCall) -> None:
        """Makes the call, whose timeout begins now."""
        assert self._call is None, "one at a time"
        call.attempt.begun()
        self._channel.send(Call(call.claim, call.attempt.deadline, call.slice_s))
        self._call, call.process = call, self
        for output in self._outputs:
            output.forget()  # The output of the last call explains nothing about the end of this one.
            output.write = call.attempt.write_output

    @property
    def has_ended(self) -> bool:
        return self.spawned.has_ended or not self._channel.is_open

    def last_lines(self) -> str:
        out, error = self._outputs
        return last_of(out, error)

    def cost(self, ended: ExitStatus) -> Usage:
        """The cost of the call in which the process ended. The peak is that of the process since its start."""
        usage, spent = ended.usage, self.spent
        cpu_s, peak_bytes = max(0.0, usage.cpu_s - spent.cpu_s), max(usage.peak_bytes, spent.rss_bytes)
        return msgspec.structs.replace(usage, cpu_s=cpu_s, peak_bytes=peak_bytes)

    async def stop(self, grace_s: float) -> ExitStatus:
        """Ends the process, and reads its messages to the end: the last one may be a checkpoint."""
        self._channel.send(Stop())
        # The event loop may write at the end of its turn, and without the message the process would ignore the signal.
        asyncio.get_running_loop().call_soon(self.spawned.stop, grace_s)
        ended = await self.spawned.wait()
        await asyncio.shield(self._is_disconnected)
        return ended

    async def end(self) -> ExitStatus:
        """Ends an idle process, and waits for its end."""
        self._channel.close()
        self.spawned.stop(GRACE_S)
        ended = await self.spawned.wait()
        if self._own_spawner is not None:
            self._own_spawner.close()
        for output in self._outputs:
            output.close()
        return ended

    def _receive(self, message: Message) -> None:
        match message:
            case Answer():
                self._answer(message)
            case LogLine(stream=stream, text=text) if self._call is not None:
                for output in self._outputs:
                    output.take()  # In the order in which it was written.
                self._call.attempt.write_log(stream, text)
            case NewState(state=state) if self._call is not None:
                self._call.attempt.tell(state)
            case Ready() if not self._ready.done():
                self._ready.set_result(message)
            case _:
                pass

    def _answer(self, answer: Answer) -> None:
        call = self._ended_call()
        if call is not None and not call.answered.done():  # A cancelled call needs no answer.
            self.jobs += 1
            self.spent, self.leftover = answer.spent, answer.leftover
            if self.leftover and call.claim.job not in _reported_jobs:
                _reported_jobs.add(call.claim.job)
                log.info("job %s leaves %s: a process that ran it is not used again", call.claim.job, self.leftover)
            call.answered.set_result(answer)
            self._free(self)

    def _disconnected(self) -> None:
        """The process has ended, or is about to."""
        if not self._ready.done():
            self._ready.set_result(None)
        self._is_disconnected.set_result(None)
        call = self._ended_call()
        if call is not None and not call.answered.done():
            call.answered.set_result(None)

    def _ended_call(self) -> JobCall | None:
        """The running call, after all of its output was read."""
        call, self._call = self._call, None
        self._drain()
        for output in self._outputs:
            output.write = None
        return call

    def _drain(self) -> None:
        for output in self._outputs:
            output.drain()


def _too_large(size_bytes: int, most_bytes: int | None, last: str = "") -> Failed:
    took, allowed = (f"{size / 2**20:,.0f} MB" for size in (size_bytes, most_bytes or 0))
    said = f"loading the app alone took {took}, and the limit is {allowed}: the job was not started"
    return Failed(payload.error("OutOfMemory", said, last), Reason.OUT_OF_MEMORY)
