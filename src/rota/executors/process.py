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
from rota.domain.outcome import Error, Failed, GivenBack, Lost, Outcome
from rota.domain.requirement import ISOLATED
from rota.domain.status import Reason
from rota.executors import stage
from rota.executors.context import Completions, Context
from rota.executors.ended import Ended
from rota.executors.frames import STOPPED, Answer
from rota.executors.lines import Lines
from rota.executors.stage import Refused, Spawned, Stage
from rota.executors.starts import Starts
from rota.executors.unbegun import unbegun, untried
from rota.executors.warm import GRACE_S, Turn, Warm

KEPT_SHARE = 4
"""Of the memory that a job may have, at most one part in so many may be taken when it begins."""
FIRST_FD = 3
"""Where a process finds the first descriptor that it is given."""
PATIENCE_S = 1.0
"""How long a call that was claimed ahead waits for a process, before somebody else may have it."""
NOT_BEGUN = GivenBack(Reason.NOT_BEGUN)
_clock = SystemClock()


class Recycling(msgspec.Struct, frozen=True, kw_only=True):
    """When a process that was used is not used again."""

    jobs: int = 10_000
    age_s: float = 3600.0
    rss_bytes: int = 512 * 1024 * 1024


class Pool:
    """The processes of one worker; started when needed, `most` at a time."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        most: int | None = None,
        recycling: Recycling | None = None,
        patience_s: float | None = None,
        is_apart: bool = False,
    ) -> None:
        """A call that has waited for a process for so long as `patience_s` is not made.

        With `is_apart` its processes have nothing in common, not even the stage: they are for jobs that may end that.
        """
        self._argv = list(argv)
        self.most = most or max(2, os.cpu_count() or 2)
        self.is_apart = is_apart
        self._patience_s = patience_s
        self._is_impatient = False
        self._recycling = recycling or Recycling()
        self._idle: dict[int | None, deque[Warm]] = {}
        self._waiting: deque[Turn] = deque()
        self._busy = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.starts = Starts(ISOLATED)
        self._has_misfits = False

    @property
    def at_hand(self) -> int:
        """Processes that make no call, for while no other can be started; none if they do not fit what comes."""
        return 0 if self._has_misfits else sum(map(len, self._idle.values()))

    def admit(self, turn: Turn) -> None:
        """The call is made as soon as there is a process that makes no other."""
        if self._busy < self.most:
            self._busy += 1
            self._place(turn)
            return
        self._waiting.append(turn)
        if self._patience_s is not None and not self._is_impatient:
            self._is_impatient = True
            asyncio.get_running_loop().call_later(self._patience_s, self._lose_patience)

    def give_up(self, since: float | None = None) -> None:
        """Makes no call that waits still, or that has waited since then: somebody else may."""
        while self._waiting and (since is None or self._waiting[0].since <= since):
            turn = self._waiting.popleft()
            if not turn.answered.done():
                turn.answered.set_result(NOT_BEGUN)

    def _lose_patience(self) -> None:
        now, patience_s = _clock.monotonic(), self._patience_s or 0.0
        self.give_up(now - patience_s)
        self._is_impatient = bool(self._waiting)
        if self._waiting:
            left_s = self._waiting[0].since + patience_s - now
            asyncio.get_running_loop().call_later(max(0.01, left_s), self._lose_patience)

    def withdraw(self, turn: Turn) -> None:
        """The call was not made, and shall not be."""
        with contextlib.suppress(ValueError):  # Its process is being started: that will find another call.
            self._waiting.remove(turn)

    def leave(self) -> None:
        """A process that was used is gone: another call can have its place."""
        self._busy -= 1
        while self._busy < self.most and (turn := self._next()) is not None:
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
        if not self.is_apart and self.starts.room == 0:
            self._turn_away(turn)
            return
        # One that is warm for another limit makes room.
        for others in self._idle.values():
            while others and sum(map(len, self._idle.values())) >= self.most:
                self._do(others.popleft().end())
        self._do(self._start_for(turn))

    def _turn_away(self, turn: Turn) -> None:
        """No process can be started for it here, for now."""
        self._busy -= 1
        self._has_misfits = self._has_misfits or self.at_hand > 0
        turn.answered.set_result(untried(_not_started(self.starts.why)))

    def _begin(self, turn: Turn, warm: Warm) -> None:
        try:
            warm.begin(turn)
        except Exception as error:  # It cannot even be sent.
            turn.answered.set_exception(error)
            self._do(warm.end())
            self.leave()

    async def _start_for(self, turn: Turn) -> None:
        try:
            warm = await self._tried(turn.memory_bytes)
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

    async def _tried(self, memory_bytes: int | None) -> Warm | Failed | str:
        """Starts a process, and keeps in mind whether that can be done here."""
        start = self.starts.begin()
        try:
            warm = await self._start(memory_bytes)
            if isinstance(warm, Warm):
                self._has_misfits = False
                start.worked()
            elif isinstance(warm, str):
                start.failed(warm)
        finally:
            start.dropped()
        return warm

    async def _start(self, memory_bytes: int | None) -> Warm | Failed | str:
        on, outputs = stage.shared().apart() if self.is_apart else stage.shared(), list[Lines]()
        with contextlib.ExitStack() as undo:
            try:
                ours, theirs = socket.socketpair()
                undo.callback(ours.close)
                if self.is_apart:
                    undo.callback(on.close)
                with theirs:
                    for stream in ("stdout", "stderr"):
                        outputs.append(Lines(stream))
                        undo.callback(outputs[-1].close)
                    spawned = await self._spawned(on, outputs, theirs.fileno(), memory_bytes)
            except (Refused, OSError) as error:
                if isinstance(error, Refused) and error.is_final:
                    return Failed(_not_started(str(error)))
                return str(error)
            undo.pop_all()
        for output in outputs:
            output.opened()
        warm = Warm(spawned, ours, outputs, memory_bytes, self._free, on if self.is_apart else None)
        problem = await warm.greet()
        if problem:
            await warm.end()
            return problem
        return warm

    async def _spawned(self, on: Stage, outputs: list[Lines], fd: int, memory_bytes: int | None) -> Spawned:
        writing = (outputs[0].writing, outputs[1].writing)
        argv = [*self._argv, "--fd", str(FIRST_FD)]
        return await on.spawn(argv, dict(os.environ), None, *writing, fds=(fd,), memory_bytes=memory_bytes)

    def _is_used_up(self, warm: Warm) -> bool:
        most_bytes, age_s = self._recycling.rss_bytes, _clock.monotonic() - warm.born_at
        if warm.memory_bytes is not None:
            # What one job has kept, the next would have less of.
            most_bytes = min(most_bytes, warm.fresh_bytes + max(0, warm.memory_bytes - warm.fresh_bytes) // KEPT_SHARE)
        is_spent = warm.jobs >= self._recycling.jobs or age_s >= self._recycling.age_s
        return is_spent or warm.is_spoilt or warm.spent.rss_bytes > most_bytes

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
        self.pool = pool
        self.memory_bytes = memory_bytes
        self.rules = rules
        self.completions = completions
        self.grace_s = grace_s
        self.begins_later = True

    async def run(self, claim: Claim, context: Context) -> Outcome:
        turn = Turn(claim, context, self.rules.slice_s, self.memory_bytes)
        self.pool.admit(turn)
        try:
            answer = await turn.answered
        except asyncio.CancelledError:
            if turn.answered.cancelled():
                await self._stopped(turn)
                raise
            answer = turn.answered.result()  # It came first, and its process may have begun another call.
        if isinstance(answer, GivenBack | Failed):
            return answer
        if isinstance(answer, Answer):
            context.usage, context.written = answer.usage, answer.written
            outcome: Outcome = answer.outcome
            return outcome
        if isinstance(answer, str):
            return unbegun(claim, _not_started(answer))
        assert turn.warm is not None
        try:
            return self._crashed(turn.warm, await turn.warm.end(), context)
        finally:
            self.pool.leave()

    async def _stopped(self, turn: Turn) -> None:
        if turn.warm is None:
            self.pool.withdraw(turn)
            return
        try:
            turn.context.usage = turn.warm.cost(await turn.warm.stop(self.grace_s))
            await turn.warm.end()
        finally:
            self.pool.leave()

    def _crashed(self, warm: Warm, ended: Ended, context: Context) -> Outcome:
        context.usage = warm.cost(ended)
        last = warm.last_lines()
        if ended.out_of_memory:
            limit, peak = (f"{size / 2**20:,.0f} MB" for size in (self.memory_bytes or 0, ended.peak_bytes))
            error = payload.error("OutOfMemory", f"the process had {peak}, and {limit} are allowed", last)
            return Failed(error, Reason.OUT_OF_MEMORY)
        if ended.error:
            # Apart, there is nobody else who could have done that.
            error = payload.error("StageLost", f"the process of the job {ended.how}: {ended.error}", last)
            return Lost(error, shared=not self.pool.is_apart)
        if warm.problem:
            how = f"wrote to its descriptor {FIRST_FD} what is no message ({warm.problem}), and was ended"
            return Lost(payload.error("Garbled", f"the process of the job {how}", last))
        how = "closed its connection to the worker, and was ended" if ended.exit_code == STOPPED else ended.how
        return Lost(payload.error("Crashed", f"the process of the job {how}", last))

    def abandon(self) -> None:
        stage.shared().abandon()


def _not_started(why: str) -> Error:
    """The first line says it; the others are what the process wrote last."""
    first, _, rest = why.partition("\n")
    return payload.error("NotStarted", f"no process could be started for the job: {first}", rest)
