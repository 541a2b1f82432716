"""Functions that run in a process of their own, one at a time: `isolation="process"`.

Processes with the app loaded are kept warm and used again, until they have run so many jobs, are so old or so large.
What a process does to itself it does to nobody else: it may use all of a core, leak, crash or be killed.

A call that waits is made in the moment in which a process answers another one: it does not wait for a task of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from rota.clock import SystemClock
from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Failed, Lost, Outcome
from rota.domain.status import Reason
from rota.executors import stage
from rota.executors.context import Completions, Context
from rota.executors.frames import Answer
from rota.executors.lines import Lines
from rota.executors.stage import Ended, Refused, Spawned
from rota.executors.warm import GRACE_S, Turn, Warm

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
    least_age_s: float = 30.0
    """A younger one has run more jobs when they were tiny ones. If they have left nothing in it, it goes on: to start
    another takes as long as a thousand of them."""


class Pool:
    """The processes of one worker; started when needed, `most` at a time."""

    def __init__(self, argv: Sequence[str], *, most: int | None = None, recycling: Recycling | None = None) -> None:
        self._argv = list(argv)
        self._most = most or max(2, os.cpu_count() or 2)
        self._recycling = recycling or Recycling()
        self._idle: dict[int | None, deque[Warm]] = {}
        self._waiting: deque[Turn] = deque()
        self._busy = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    def admit(self, turn: Turn) -> None:
        """The call is made as soon as there is a process that makes no other."""
        if self._busy < self._most:
            self._busy += 1
            self._place(turn)
        else:
            self._waiting.append(turn)

    def withdraw(self, turn: Turn) -> None:
        """The call was not made, and shall not be."""
        with contextlib.suppress(ValueError):  # Its process is being started: that will find another call.
            self._waiting.remove(turn)

    def leave(self) -> None:
        """A process that was used is gone: another call can have its place."""
        self._busy -= 1
        while self._busy < self._most and (turn := self._next()) is not None:
            self._busy += 1
            self._place(turn)

    def _free(self, warm: Warm) -> None:
        """The process can make another call, unless it was used enough."""
        if self._is_used_up(warm):
            self._do(warm.end())
        elif (turn := self._next(warm)) is not None:
            self._begin(turn, warm)
            return
        else:
            self._idle.setdefault(warm.memory_bytes, deque()).append(warm)
        self.leave()

    def _next(self, warm: Warm | None = None) -> Turn | None:
        """Takes the first call that waits, if this process can make it."""
        while self._waiting and self._waiting[0].answered.done():
            self._waiting.popleft()
        if not self._waiting or (warm is not None and self._waiting[0].memory_bytes != warm.memory_bytes):
            return None
        return self._waiting.popleft()

    def _place(self, turn: Turn) -> None:
        idle = self._idle.setdefault(turn.memory_bytes, deque())
        while idle:
            warm = idle.pop()
            if not warm.has_ended:
                self._begin(turn, warm)
                return
            self._do(warm.end())
        # One that is warm for another limit makes room.
        for others in self._idle.values():
            while others and sum(map(len, self._idle.values())) >= self._most:
                self._do(others.popleft().end())
        self._do(self._start_for(turn))

    def _begin(self, turn: Turn, warm: Warm) -> None:
        try:
            warm.begin(turn)
        except Exception as error:  # It cannot even be sent.
            turn.answered.set_exception(error)
            self._do(warm.end())
            self.leave()

    async def _start_for(self, turn: Turn) -> None:
        try:
            warm = await self._start(turn.memory_bytes)
        except Exception as error:
            if not turn.answered.done():
                turn.answered.set_exception(error)
            self.leave()
            return
        if isinstance(warm, Warm) and not turn.answered.done():
            self._begin(turn, warm)
        elif isinstance(warm, Warm):
            self._free(warm)  # Nobody waits for it any more, but others may.
        else:
            if not turn.answered.done():
                turn.answered.set_result(warm)
            self.leave()

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
        warm = Warm(spawned, ours, outputs, memory_bytes, self._free)
        problem = await warm.greet()
        if problem:
            await warm.end()
            return problem
        return warm

    async def _spawned(self, outputs: list[Lines], fd: int, memory_bytes: int | None) -> Spawned:
        writing = (outputs[0].writing, outputs[1].writing)
        argv = [*self._argv, "--fd", str(FIRST_FD)]
        return await stage.shared().spawn(argv, dict(os.environ), None, *writing, fds=(fd,), memory_bytes=memory_bytes)

    def _is_used_up(self, warm: Warm) -> bool:
        most_bytes, age_s = self._recycling.rss_bytes, _clock.monotonic() - warm.born_at
        if warm.memory_bytes is not None:
            # What one job has kept, the next would have less of.
            most_bytes = min(most_bytes, warm.fresh_bytes + max(0, warm.memory_bytes - warm.fresh_bytes) // KEPT_SHARE)
        is_spent = warm.jobs >= self._recycling.jobs and not (warm.is_bare and age_s < self._recycling.least_age_s)
        return is_spent or warm.is_spoilt or age_s >= self._recycling.age_s or warm.rss_bytes > most_bytes

    def _do(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


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
        turn = Turn(claim, context, self.rules.slice_s, self._memory_bytes)
        self._pool.admit(turn)
        try:
            answer = await turn.answered
        except asyncio.CancelledError:
            if turn.answered.cancelled():
                await self._stopped(turn)
                raise
            answer = turn.answered.result()  # It came first, and its process may have begun another call.
        if isinstance(answer, Answer):
            context.usage, context.written = answer.usage, answer.written
            outcome: Outcome = answer.outcome
            return outcome
        if isinstance(answer, str):
            return Failed(payload.error("ProcessError", f"no process could be started for the job: {answer}"))
        assert turn.warm is not None
        try:
            return self._crashed(turn.warm, await turn.warm.end(), context)
        finally:
            self._pool.leave()

    async def _stopped(self, turn: Turn) -> None:
        if turn.warm is None:
            self._pool.withdraw(turn)
            return
        try:
            turn.context.usage = (await turn.warm.stop(self.grace_s)).usage
            await turn.warm.end()
        finally:
            self._pool.leave()

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
