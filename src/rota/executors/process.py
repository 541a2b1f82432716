"""Functions that run in a process of their own, one at a time: `isolation="process"`.

Processes with the app loaded are kept warm and used again, until they have run so many jobs, are so old or so large.
What a process does to itself it does to nobody else: it may use all of a core, leak, crash or be killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from rota.clock import SystemClock
from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Failed, Lost, Outcome
from rota.domain.status import Reason
from rota.executors import frames, stage
from rota.executors.context import Completions, Context
from rota.executors.frames import Answer, Call, Ready, Told, Wrote
from rota.executors.lines import Lines
from rota.executors.stage import Ended, Refused, Spawned

GRACE_S = 10.0
START_S = 60.0
KEPT_SHARE = 4
"""Of the memory that a job may have, at most one part in so many may be taken when it begins."""
FIRST_FD = 3
"""Where a process finds the first descriptor that it is given."""
_clock = SystemClock()


class Recycling(msgspec.Struct, frozen=True, kw_only=True):
    """When a process that was used is not used again."""

    jobs: int = 1000
    age_s: float = 3600.0
    rss_bytes: int = 512 * 1024 * 1024


class Warm:
    """One process with the app loaded."""

    def __init__(self, spawned: Spawned, end: socket.socket, outputs: Sequence[Lines]) -> None:
        self.spawned = spawned
        self.born_at = _clock.monotonic()
        self.jobs = 0
        self.fresh_bytes = 0
        """Its size before its first job."""
        self.rss_bytes = 0
        self.is_spoilt = False
        self._end = end
        self._outputs = outputs
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def greet(self) -> str:
        """Waits until the app is loaded; returns why it is not, if so."""
        self._reader, self._writer = await asyncio.open_unix_connection(sock=self._end)
        try:
            async with asyncio.timeout(START_S):
                hello = await frames.areceive(self._reader)
        except TimeoutError:
            return f"its app was not loaded within {START_S:g} s"
        if isinstance(hello, Ready):
            self.fresh_bytes = hello.rss_bytes
            return hello.error
        await self.spawned.wait()
        await self._drain()
        return "its process ended while the app was loaded:\n" + self.last_lines()

    async def run(self, call: Call, context: Context) -> Answer | None:
        """The answer; None if the process ended without one."""
        assert self._reader is not None, "greeted before"
        assert self._writer is not None
        for output in self._outputs:
            output.write = context.write_lines
        self._writer.write(frames.encode(call))
        try:
            while not isinstance(message := await frames.areceive(self._reader), Answer):
                if message is None:
                    return None
                _heed(message, context)
        finally:
            await self._drain()
            for output in self._outputs:
                output.write = None
        self.jobs += 1
        self.rss_bytes, self.is_spoilt = message.rss_bytes, message.is_spoilt
        return message

    @property
    def has_ended(self) -> bool:
        return self.spawned.has_ended

    def last_lines(self) -> str:
        out, error = self._outputs
        return error.last() or out.last()

    async def end(self) -> Ended:
        """Lets it go, and waits until it has gone."""
        if self._writer is not None:
            self._writer.close()
        else:
            self._end.close()
        self.spawned.stop(GRACE_S)
        ended = await self.spawned.wait()
        for output in self._outputs:
            output.close()
        return ended

    async def _drain(self) -> None:
        for output in self._outputs:
            output.drain()


def _heed(message: frames.Message, context: Context) -> None:
    match message:
        case Told(state=state):
            context._tell(state)
        case Wrote(stream=stream, text=text):
            context.write_log(stream, text)
        case _:
            pass


class Pool:
    """The processes of one worker; started when needed, `most` at a time."""

    def __init__(self, argv: Sequence[str], *, most: int | None = None, recycling: Recycling | None = None) -> None:
        self._argv = list(argv)
        self._most = most or max(2, os.cpu_count() or 2)
        self._recycling = recycling or Recycling()
        self._idle: dict[int | None, deque[Warm]] = {}
        self._places: asyncio.Semaphore | None = None
        self._ending: set[asyncio.Task[Any]] = set()

    @contextlib.asynccontextmanager
    async def lent(self, memory_bytes: int | None) -> AsyncIterator[Warm | str]:
        """A process that nobody else uses meanwhile; or a text, why there is none."""
        if self._places is None:
            self._places = asyncio.Semaphore(self._most)
        async with self._places:
            warm = await self._get(memory_bytes)
            if isinstance(warm, str):
                yield warm
                return
            is_well = False
            try:
                yield warm
                is_well = True
            finally:
                if is_well and warm.jobs and not self._is_used_up(warm, memory_bytes):
                    self._idle.setdefault(memory_bytes, deque()).append(warm)
                elif is_well:
                    self._end(warm)

    async def _get(self, memory_bytes: int | None) -> Warm | str:
        idle = self._idle.setdefault(memory_bytes, deque())
        while idle:
            warm = idle.pop()
            if not warm.has_ended:
                return warm
        # One that is warm for another limit makes room.
        for others in self._idle.values():
            while others and sum(map(len, self._idle.values())) >= self._most:
                self._end(others.popleft())
        return await self._start(memory_bytes)

    async def _start(self, memory_bytes: int | None) -> Warm | str:
        outputs: list[Lines] = []
        with contextlib.ExitStack() as undo:
            try:
                ours, theirs = socket.socketpair()
                undo.callback(ours.close)
                with theirs:
                    for stream in ("stdout", "stderr"):
                        outputs.append(Lines(stream))
                        undo.callback(outputs[-1].close)
                    spawned = await self._spawned(outputs, theirs.fileno(), memory_bytes)
            except (Refused, OSError) as error:
                return str(error)
            undo.pop_all()
        for output in outputs:
            output.opened()
        warm = Warm(spawned, ours, outputs)
        try:
            problem = await warm.greet()
        except BaseException:
            self._end(warm)  # Nobody waits for it any more.
            raise
        if problem:
            await warm.end()
            return problem
        return warm

    async def _spawned(self, outputs: list[Lines], fd: int, memory_bytes: int | None) -> Spawned:
        writing = (outputs[0].writing, outputs[1].writing)
        argv = [*self._argv, "--fd", str(FIRST_FD)]
        return await stage.shared().spawn(argv, dict(os.environ), None, *writing, fds=(fd,), memory_bytes=memory_bytes)

    def _is_used_up(self, warm: Warm, memory_bytes: int | None) -> bool:
        most_bytes = self._recycling.rss_bytes
        if memory_bytes is not None:
            # What one job has kept, the next would have less of.
            most_bytes = min(most_bytes, warm.fresh_bytes + max(0, memory_bytes - warm.fresh_bytes) // KEPT_SHARE)
        is_old = _clock.monotonic() - warm.born_at >= self._recycling.age_s
        return is_old or warm.is_spoilt or warm.jobs >= self._recycling.jobs or warm.rss_bytes > most_bytes

    def _end(self, warm: Warm) -> None:
        task = asyncio.get_running_loop().create_task(warm.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class ProcessExecutor:
    """Runs one job's function in a process of the pool."""

    def __init__(
        self,
        pool: Pool,
        rules: Rules,
        *,
        memory_bytes: int | None = None,
        grace_s: float = GRACE_S,
        completions: Completions | None = None,
    ) -> None:
        self._pool = pool
        self._memory_bytes = memory_bytes
        self.rules = rules
        self.completions = completions
        self.grace_s = grace_s
        self.begins_later = True

    async def run(self, claim: Claim, context: Context) -> Outcome:
        async with self._pool.lent(self._memory_bytes) as warm:
            if isinstance(warm, str):
                return Failed(payload.error("ProcessError", f"no process could be started for the job: {warm}"))
            context.begun()
            call = asyncio.ensure_future(warm.run(Call(claim, context.deadline, self.rules.slice_s), context))
            try:
                answer = await asyncio.shield(call)
            except asyncio.CancelledError:
                await self._stopped(warm, call, context)
                raise
            if answer is not None:
                context.usage, context.written = answer.usage, answer.written
                outcome: Outcome = answer.outcome
                return outcome
            return self._crashed(warm, await warm.end(), context)

    async def _stopped(self, warm: Warm, call: asyncio.Future[Any], context: Context) -> None:
        """Ends the process, and reads on until then: what the function keeps for the next attempt comes last."""
        warm.spawned.stop(self.grace_s)
        ended = await warm.spawned.wait()
        await asyncio.wait([call])
        context.usage = ended.usage
        await warm.end()

    def _crashed(self, warm: Warm, ended: Ended, context: Context) -> Outcome:
        context.usage = ended.usage
        last = warm.last_lines()
        if ended.out_of_memory:
            limit, peak = (f"{size / 2**20:,.0f} MB" for size in (self._memory_bytes or 0, ended.peak_bytes))
            error = payload.error("OutOfMemory", f"the process had {peak}, and {limit} are allowed", last)
            return Failed(error, Reason.OUT_OF_MEMORY)
        how = (
            f"was ended by {stage.signal_name(ended.signal)}"
            if ended.signal
            else f"ended with exit code {ended.exit_code}"
        )
        return Lost(payload.error("Crashed", f"the process of the job {how}", last))

    def abandon(self) -> None:
        stage.shared().abandon()
