"""Functions that run in a process of their own, one at a time: `isolation="process"`.

Processes with the app loaded are kept warm and used again, up to a number of jobs, an age and a size (`Recycling`). A
job may use all of a core, leak, crash or be killed without harm to others.

A waiting call begins in the callback in which a process answers the last one, without a task in between.
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

from rota.clock import MACHINE
from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Error, Failed, GivenBack, Lost, Outcome
from rota.domain.requirement import ISOLATED
from rota.domain.status import Reason
from rota.executors.attempt_state import AttemptState, Completions
from rota.executors.port import Executor, Processes
from rota.executors.process import spawner
from rota.executors.process.connection import STOPPED, Answer
from rota.executors.process.exit_process import HANDLERS_S
from rota.executors.process.lines import Lines
from rota.executors.process.spawned import ExitStatus
from rota.executors.process.spawner import Spawner
from rota.executors.process.start_backoff import StartBackoff, not_started
from rota.executors.process.started_processes import Refused
from rota.executors.process.warm_process import GRACE_S, JobCall, WarmProcess

KEPT_SHARE = 4
"""Before a job begins, its process is replaced if it has grown since its start by more than this part (one fourth) of
the memory that it then had left."""
PATIENCE_S = 1.0
"""How long a prefetched call waits for a process before it is given back."""
NOT_BEGUN = GivenBack(Reason.NOT_BEGUN)


class Recycling(msgspec.Struct, frozen=True, kw_only=True):
    """When a process is replaced: after this many jobs, at this age, or at this size."""

    jobs: int = 10_000
    age_s: float = 3600.0
    rss_bytes: int = 512 * 1024 * 1024


class Pool(Processes):
    """The processes of one worker; started when needed, `most` at a time."""

    most: int

    def __init__(
        self,
        argv: Sequence[str],
        *,
        most: int | None = None,
        recycling: Recycling | None = None,
        patience_s: float | None = None,
        is_for_suspects: bool = False,
    ) -> None:
        """Without `most`, or if it is 0, as many processes as the machine has cores, and at least two.

        A call that has waited for a process for `patience_s` is given back.

        With `is_for_suspects` each process has a spawner of its own, because a suspect may kill its spawner.
        """
        super().__init__(StartBackoff(ISOLATED))
        self._argv = list(argv)
        self.most = most or max(2, os.cpu_count() or 2)
        self.is_for_suspects = is_for_suspects
        self._patience_s = patience_s
        self._recycling = recycling or Recycling()
        self._idle: list[WarmProcess] = []
        self._waiting: deque[JobCall] = deque()
        self._busy = 0
        self._tasks: set[asyncio.Task[None]] = set()
        """Processes that are being started or ended."""
        self._has_misfits = False

    @property
    def at_hand(self) -> int:  # type: ignore[override]
        """Idle processes, to be used while no other can be started; 0 if their memory limits do not fit."""
        return 0 if self._has_misfits else len(self._idle)

    def admit(self, call: JobCall) -> None:
        """Makes the call as soon as a process is free."""
        if self._busy < self.most:
            self._busy += 1
            self._place(call)
            return
        self._waiting.append(call)
        if self._patience_s is not None:
            asyncio.get_running_loop().call_later(self._patience_s, self._give_back, call)

    def give_up(self) -> None:
        """Gives back the calls that wait."""
        for call in list(self._waiting):
            self._give_back(call)

    def _give_back(self, call: JobCall) -> None:
        if not call.answered.done() and call in self._waiting:
            self._waiting.remove(call)
            call.answered.set_result(NOT_BEGUN)

    async def close(self) -> None:
        """After the last call: ends the processes, so that their atexit handlers run."""
        while self._idle:
            self._end(self._idle.pop())
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=HANDLERS_S)

    def withdraw(self, call: JobCall) -> None:
        """Drops a call that was cancelled before it began."""
        with contextlib.suppress(ValueError):  # Its process is being started, and will take another call.
            self._waiting.remove(call)

    def leave(self) -> None:
        """A process is no longer busy: the next waiting call takes its place."""
        self._busy -= 1
        while self._busy < self.most and (call := self._next()) is not None:
            self._busy += 1
            self._place(call)

    def _free(self, warm: WarmProcess) -> None:
        """Gives the process the next call, unless it is due to be replaced."""
        if self._is_used_up(warm):
            self._end(warm)
        elif (call := self._next(warm)) is not None:
            self._begin(call, warm)
            return
        else:
            self._idle.append(warm)
        self.leave()

    def _next(self, warm: WarmProcess | None = None) -> JobCall | None:
        """Takes the first waiting call, if it has the memory limit of this process."""
        while self._waiting and self._waiting[0].answered.done():
            self._waiting.popleft()
        if not self._waiting or (warm is not None and self._waiting[0].memory_bytes != warm.memory_bytes):
            return None
        return self._waiting.popleft()

    def _place(self, call: JobCall) -> None:
        for warm in [one for one in reversed(self._idle) if one.memory_bytes == call.memory_bytes]:
            self._idle.remove(warm)
            if not warm.has_ended:
                self._begin(call, warm)
                return
            self._end(warm)
        if not self.is_for_suspects and self.starts.room == 0:
            self._busy -= 1
            self._has_misfits = bool(self._idle)
            # No delay: nothing was tried here, and another worker may run it at once.
            call.answered.set_result(GivenBack(Reason.NOT_BEGUN, error=_not_started(self.starts.why)))
            return
        while len(self._idle) >= self.most:
            self._end(self._idle.pop(0))  # Its memory limit differs.
        self._do(self._start_for(call))

    def _begin(self, call: JobCall, warm: WarmProcess) -> None:
        try:
            warm.begin(call)
        except Exception as error:  # The call cannot be encoded.
            call.answered.set_exception(error)
            self._end(warm)
            self.leave()

    async def _start_for(self, call: JobCall) -> None:
        self.starts.begin()
        try:
            warm = await self._start(call.memory_bytes)
        except Exception as error:
            warm = repr(error)
        if isinstance(warm, WarmProcess):
            self._has_misfits = False
            self.starts.worked()
            if call.answered.done():
                self._free(warm)  # Its call was cancelled; another one may wait.
            else:
                self._begin(call, warm)
            return
        if isinstance(warm, str):
            self.starts.failed(warm)
        if not call.answered.done():
            call.answered.set_result(warm if isinstance(warm, Failed) else not_started(call.claim, _not_started(warm)))
        self.leave()

    async def _start(self, memory_bytes: int | None) -> WarmProcess | Failed | str:
        on, outputs = Spawner() if self.is_for_suspects else spawner.shared(), list[Lines]()
        with contextlib.ExitStack() as undo:
            try:
                ours, theirs = socket.socketpair()
                undo.callback(ours.close)
                if self.is_for_suspects:
                    undo.callback(on.close)
                with theirs:
                    for stream in ("stdout", "stderr"):
                        outputs.append(Lines(stream))
                        undo.callback(outputs[-1].close)
                    writing = (outputs[0].writing, outputs[1].writing)
                    spawned = await on.spawn(
                        self._argv, os.environ, None, *writing, stdin=theirs.fileno(), memory_bytes=memory_bytes
                    )
            except (Refused, OSError) as error:
                if isinstance(error, Refused) and error.is_final:
                    return Failed(_not_started(str(error)))
                return str(error)
            undo.pop_all()
        for output in outputs:
            output.opened()
        warm = WarmProcess(spawned, outputs, memory_bytes, self._free, on if self.is_for_suspects else None)
        problem = await warm.wait_ready(ours)
        if problem:
            await warm.end()
            return problem
        return warm

    def _is_used_up(self, warm: WarmProcess) -> bool:
        most_bytes, age_s = self._recycling.rss_bytes, MACHINE.monotonic() - warm.born_at
        if warm.memory_bytes is not None:
            # Memory that one job has kept is not available to the next.
            most_bytes = min(most_bytes, warm.fresh_bytes + max(0, warm.memory_bytes - warm.fresh_bytes) // KEPT_SHARE)
        is_spent = warm.jobs >= self._recycling.jobs or age_s >= self._recycling.age_s
        return is_spent or bool(warm.leftover) or warm.spent.rss_bytes > most_bytes

    def _end(self, warm: WarmProcess) -> None:
        self._do(warm.end())

    def _do(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class ProcessExecutor(Executor):
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
        self.pool = self.processes = pool
        self.memory_bytes = memory_bytes
        self.rules = rules
        self.completions = completions
        self.grace_s = grace_s
        self.begins_later = True

    async def run(self, claim: Claim, attempt: AttemptState) -> Outcome:
        call = JobCall(claim, attempt, self.rules.slice_s, self.memory_bytes)
        self.pool.admit(call)
        try:
            answer = await call.answered
        except asyncio.CancelledError:
            if call.answered.cancelled():
                await self._stopped(call)
                raise
            answer = call.answered.result()  # The answer came first, and the process may have begun another call.
        if isinstance(answer, Answer):
            attempt.usage, attempt.written = answer.usage, answer.written
            outcome: Outcome = answer.outcome
            return outcome
        if answer is not None:
            return answer
        assert call.process is not None
        try:
            return self._crashed(call.process, await call.process.end(), attempt)
        finally:
            self.pool.leave()

    async def _stopped(self, call: JobCall) -> None:
        if call.process is None:
            self.pool.withdraw(call)
            return
        try:
            call.attempt.usage = call.process.cost(await call.process.stop(self.grace_s))
            await call.process.end()
        finally:
            self.pool.leave()

    def _crashed(self, warm: WarmProcess, ended: ExitStatus, attempt: AttemptState) -> Outcome:
        attempt.usage = warm.cost(ended)
        last = warm.last_lines()
        if ended.out_of_memory:
            limit, peak = (f"{size / 2**20:,.0f} MB" for size in (self.memory_bytes or 0, ended.peak_bytes))
            error = payload.error("OutOfMemory", f"the process used {peak}, and its limit is {limit}", last)
            return Failed(error, Reason.OUT_OF_MEMORY)
        if ended.error:
            error = payload.error("SpawnerLost", f"the process of the job {ended.how}: {ended.error}", last)
            return Lost(error, shared=not self.pool.is_for_suspects)
        how = "closed its connection to the worker, and was ended" if ended.exit_code == STOPPED else ended.how
        return Lost(payload.error("Crashed", f"the process of the job {how}", last))

    def abandon(self) -> None:
        spawner.shared().close()


def _not_started(why: str) -> Error:
    """The first line of `why` is the reason; the others are the last output of the process."""
    first, _, rest = why.partition("\n")
    return payload.error("NotStarted", f"no process could be started for the job: {first}", rest)
