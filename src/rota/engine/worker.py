"""Runs claims and turns each into an Outcome. Never writes: outcomes go to the completer.

Every attempt has a task that awaits its executor. It can be asked to stop, for one of five causes; then the task is
cancelled, unless the code runs in a thread, which can only see that it should stop. An attempt that does not stop
within the grace is written off: its outcome is recorded, its slot is free again, and the process asks to be replaced,
because the code may still be running in it.

A prefetched execution waits for a slot, but not for long: then it is given back, because another worker
may have a free slot.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Mapping

from rota.clock import Clock
from rota.domain import overrides
from rota.domain.claim import Claim
from rota.domain.errors import StoreError
from rota.domain.instant import MICROSECONDS
from rota.domain.outcome import Cancelled, Failed, GivenBack, Outcome, Succeeded
from rota.domain.status import Reason
from rota.engine import attempt as limits
from rota.engine.attempt import Attempt, Stop
from rota.engine.capacity import Pace, ProcessCapacity
from rota.engine.completer import Completer
from rota.engine.scribe import Scribe
from rota.engine.slot_queue import SlotQueue
from rota.engine.threads import Threads
from rota.engine.timers import PER_SECOND, Timers, Watchdog
from rota.executors import capture, data_jobs
from rota.executors.attempt_state import AttemptState
from rota.executors.function import described
from rota.executors.port import Executor
from rota.executors.process.fork_guard import Original
from rota.ops.finish import DEFAULT_RULES, Finished, times

log = logging.getLogger("rota.engine")

STOP_GRACE_S = 5.0
MISSING_JOB_DELAY_S = 5.0
_NOT_BEGUN = GivenBack(Reason.NOT_BEGUN)


class Worker:
    """The slots of one process."""

    def __init__(
        self,
        targets: Mapping[str, Executor],
        completer: Completer,
        clock: Clock,
        concurrency: int,
        pace: Pace,
        *,
        scribe: Scribe | None = None,
        alone: Mapping[str, Executor] | None = None,
        slot_freed: Callable[[], None] = lambda: None,
        stop_grace_s: float = STOP_GRACE_S,
        blocked: Callable[[Finished], None] | None = None,
    ) -> None:
        """`alone` runs suspects, each in a process of its own.

        `blocked` reports the attempt that blocks the event loop beyond its timeout, and ends the process. It is called
        in a thread.
        """
        self._targets = targets
        self._completer = completer
        self._clock = clock
        self._concurrency = concurrency
        self._slot_freed = slot_freed
        self._stop_grace_s = stop_grace_s
        self._pace = pace
        self._alone = alone or {}
        self.processes = ProcessCapacity(targets, clock, alone)
        self._scribe = scribe
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, Attempt] = {}
        self._waiting = SlotQueue(self._give_back)
        self._begins = True
        self._blocked = blocked
        self._watchdog = Watchdog(lambda: self._deadlines.first_at, self._culprit, self._end_blocked)
        self._deadlines = Timers(self._time_out, self._watchdog.wake if blocked else lambda: None)
        self._silences = Timers(self._check_progress)
        self._graces = Timers(self._write_off)
        self._threads = Threads()
        self._loop = asyncio.get_running_loop()
        self._original = Original()
        self._variables = contextvars.copy_context()
        """The context variables as the app's import has left them: each attempt runs in a copy of its own."""
        self.is_tainted = False
        """Code that did not stop may still run in this process: it should be replaced."""

    @property
    def free(self) -> int:
        """How many claims it can take: none in a process that must be replaced."""
        held = len(self._running) + len(self._waiting)
        return 0 if self.is_tainted else self._concurrency + self._pace.ahead - held

    @property
    def is_idle(self) -> bool:
        return not self._running and not self._waiting and not self._telling

    def held(self) -> list[str]:
        return [*self._running, *self._waiting, *self._telling]

    def take(self, claim: Claim) -> None:
        """Begins an attempt, or keeps the claim until a slot is free."""
        if not self._begins:
            self._report(claim, _NOT_BEGUN, None)
        elif len(self._running) < self._concurrency:
            self._start(claim)
        else:
            self._waiting.add(claim)

    def begin_no_more(self) -> None:
        """Gives back the claims that wait for a slot, and all that still arrive."""
        self._begins = False
        while self._waiting:
            self._give_back(self._waiting.pop())
        self.processes.give_up()

    def _give_back(self, claim: Claim) -> None:
        self._report(claim, _NOT_BEGUN, None)

    def _start(self, claim: Claim) -> None:
        """Begins an attempt in a task of its own."""
        if (attempt := self._prepared(claim)) is not None:
            # Without a name, asyncio writes a new one for every task.
            variables = self._variables.copy()
            attempt.task = self._loop.create_task(self._run(attempt), name=claim.job, context=variables)

    def _prepared(self, claim: Claim) -> Attempt | None:
        """An attempt in a slot, for which the caller has a task; None if it is over before it begins."""
        target = self._target(claim)
        if target is None:
            # A worker claims only jobs that it has.
            log.error("execution %s is of job %r, which this worker does not have: given back", claim.id, claim.job)
            self._report(claim, GivenBack(Reason.NOT_BEGUN, MISSING_JOB_DELAY_S), None)
            return None
        rules = overrides.applied(target.rules, claim.overrides)
        limit_s, limit = limits.limit(claim, rules)
        if limit_s is not None and limit_s <= 0:
            self._report(claim, limits.timed_out(limit, rules), target)
            return None
        deadline = None if limit_s is None else claim.started_at + round(limit_s * MICROSECONDS)
        state = AttemptState(claim, deadline, target.completions, self._scribe, self._threads, self._original)
        attempt = Attempt(claim, target, state, rules, limit)
        self._running[claim.id] = attempt
        if target.processes is not None:
            self.processes.began(target.processes)
        if target.begins_later:
            self._await_process(attempt)
        else:
            self._arm(attempt, limit_s)
        return attempt

    def _target(self, claim: Claim) -> Executor | None:
        found = None
        if claim.definition is not None:
            found = data_jobs.find(claim.definition, self._alone) if claim.is_suspect else None
            return found or data_jobs.find(claim.definition, self._targets)
        if claim.is_suspect:
            found = self._alone.get(claim.job)
        return found or self._targets.get(claim.job)

    def _await_process(self, attempt: Attempt) -> None:
        """While the attempt waits for a process, only the total timeout runs."""
        claim, since = attempt.claim, self._loop.time()
        attempt.state.begun = lambda: self._begun(attempt, self._loop.time() - since)
        if (left_s := limits.total_left_s(claim, attempt.rules)) is not None:
            attempt.limit = Stop.TOTAL_TIMEOUT
            attempt.bucket = self._deadlines.add(left_s, claim.id)

    def _begun(self, attempt: Attempt, waited_s: float) -> None:
        """The attempt has got its process, and its own timeout begins."""
        limit_s, limit = limits.limit(attempt.claim, attempt.rules, waited_s)
        if limit_s is not None:
            attempt.state.deadline = self._clock.now() + round(limit_s * MICROSECONDS)
        if attempt.stop is None and self._running.get(attempt.claim.id) is attempt:
            if attempt.bucket >= 0:
                self._deadlines.remove(attempt.bucket, attempt.claim.id)
            attempt.limit = limit
            self._arm(attempt, limit_s)

    def _arm(self, attempt: Attempt, limit_s: float | None) -> None:
        id, silence_s = attempt.claim.id, attempt.rules.progress_timeout_s
        if limit_s is not None:
            attempt.bucket = self._deadlines.add(limit_s, id)
        if silence_s is not None:
            attempt.silence_bucket = self._silences.add(silence_s, id)

    def stop(self, id: str, cause: Stop) -> None:
        """Asks one attempt to stop; the first cause stands."""
        if (waiting := self._waiting.remove(id)) is not None:
            self._report(waiting, Cancelled() if cause is Stop.CANCEL else _NOT_BEGUN, None)
            return
        attempt = self._running.get(id)
        if attempt is None or attempt.stop is not None:
            return
        attempt.stop = cause
        attempt.state.ask_to_stop()
        attempt.grace_bucket = self._graces.add(attempt.target.grace_s + self._stop_grace_s, id)
        if attempt.has_begun and not attempt.target.is_in_thread:
            attempt.task.cancel()

    def stop_all(self, cause: Stop) -> None:
        for id in self.held():
            self.stop(id, cause)

    def close(self) -> None:
        """Ends all attempts without a report: the lease is lost, and other workers may run these executions."""
        self._watchdog.close()
        for timers in (self._deadlines, self._silences, self._graces):
            timers.close()
        self._waiting.close()
        for attempt in list(self._running.values()):
            attempt.task.cancel()
        self._running.clear()
        for target in self._targets.values():
            target.abandon()
        self._threads.close()

    async def _run(self, attempt: Attempt) -> None:
        """Runs the attempt. If that was in a thread, the same task then runs one whose claim waits for a slot."""
        task = attempt.task
        while True:
            outcome: Outcome
            attempt.has_begun = True
            try:
                if attempt.stop is not None:
                    raise asyncio.CancelledError
                outcome = await attempt.target.run(attempt.claim, attempt.state)
            except asyncio.CancelledError as error:
                outcome = _stopped(attempt, error)
            except BaseException as error:
                log.exception("the executor of job %s failed", attempt.claim.job)
                outcome = Failed(described(error))
            if not self._end(attempt, outcome):
                return
            following = self._next() if attempt.target.is_in_thread else None
            self._fill_slots()
            if following is None:
                return
            attempt = following
            attempt.task = task

    def _end(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Frees the slot and reports the outcome; False if the attempt was written off before, or the worker closed."""
        self._original.end_copy()
        id = attempt.claim.id
        if self._running.get(id) is not attempt:
            return False
        del self._running[id]
        if attempt.bucket >= 0:
            self._deadlines.remove(attempt.bucket, id)
        if attempt.grace_bucket >= 0:
            self._graces.remove(attempt.grace_bucket, id)
        if attempt.silence_bucket >= 0:
            self._silences.remove(attempt.silence_bucket, id)
        self._report_end(attempt, outcome)
        self._pace.ended += 1
        if attempt.target.processes is not None:
            self.processes.ended(attempt.target.processes)
        return True

    def _next(self) -> Attempt | None:
        """An attempt of the claim that is next to start, if there is a free slot."""
        while self._waiting and len(self._running) < self._concurrency:
            if (attempt := self._prepared(self._waiting.pop())) is not None:
                return attempt
        return None

    def _fill_slots(self) -> None:
        while self._waiting and len(self._running) < self._concurrency:
            self._start(self._waiting.pop())
        self._slot_freed()

    def _report_end(self, attempt: Attempt, outcome: Outcome) -> None:
        """Reports the outcome, after the checkpoint for the next attempt is written: the store refuses it later."""
        claim, state, scribe = attempt.claim, attempt.state, self._scribe
        has_told = state.spoke or state.told
        if has_told:
            capture.finish(state)
        state.notes = None  # From now on, log lines of a thread that the job left running are dropped.
        if scribe is not None and has_told:
            scribe.ended(claim.id, claim.fence)
            if scribe.has_state(claim.id, claim.fence):
                self._telling[claim.id] = self._loop.create_task(self._write_state(attempt, outcome, scribe))
                return
        self._report(claim, outcome, attempt.target, state)

    async def _write_state(self, attempt: Attempt, outcome: Outcome, scribe: Scribe) -> None:
        claim = attempt.claim
        with contextlib.suppress(StoreError):  # While the database is away, the checkpoint cannot be written.
            while scribe.has_state(claim.id, claim.fence):
                await scribe.flush()
        del self._telling[claim.id]
        self._report(claim, outcome, attempt.target, attempt.state)
        self._slot_freed()

    def _culprit(self) -> str | None:
        """The attempt whose task holds the loop, if its time is over. Called in the watchdog's thread."""
        task, now = asyncio.current_task(self._loop), self._loop.time() * PER_SECOND
        try:
            held = [one for one in self._running.values() if one.task is task and 0 <= one.bucket <= now]
        except RuntimeError:
            return None  # The dictionary has changed meanwhile, so the loop is not held.
        return held[0].claim.id if held else None

    def _end_blocked(self, id: str) -> None:
        attempt = self._running.get(id)
        if attempt is not None and self._blocked is not None:
            self._blocked(self._finished(attempt.claim, limits.timed_out(attempt.limit, attempt.rules), attempt.target))

    def _time_out(self, id: str) -> None:
        self.stop(id, self._running[id].limit)

    def _check_progress(self, id: str) -> None:
        """Stops an attempt that has reported no progress for too long. Its time runs from the last report."""
        attempt = self._running[id]
        left_s = limits.silence_left_s(attempt.rules, attempt.state)
        if left_s <= 0:
            self.stop(id, Stop.PROGRESS_TIMEOUT)
        else:
            attempt.silence_bucket = self._silences.add(left_s, id)

    def _write_off(self, id: str) -> None:
        attempt = self._running.get(id)
        if attempt is None:
            return
        self.is_tainted = True
        self.begin_no_more()
        grace_s = attempt.target.grace_s + self._stop_grace_s
        log.warning("job %s did not stop within %g s; its process will be replaced", attempt.claim.job, grace_s)
        if self._end(attempt, _stopped(attempt, None)):
            self._fill_slots()

    def _report(
        self, claim: Claim, outcome: Outcome, target: Executor | None, state: AttemptState | None = None
    ) -> None:
        self._completer.add(self._finished(claim, outcome, target, state), claim_is_near=claim.run is not None)

    def _finished(
        self, claim: Claim, outcome: Outcome, target: Executor | None, state: AttemptState | None = None
    ) -> Finished:
        rules = DEFAULT_RULES if target is None else target.rules
        is_success = type(outcome) is Succeeded
        return Finished(
            claim.id,
            claim.fence,
            outcome,
            0.0 if is_success else self._clock.random(),
            claim.job,
            None if state is None else state.written,
            None if state is None else state.usage,
            None if is_success else claim,
            rules.breakers,
            rules.pauses,
            claim.run_info,
            *times(claim),
        )


def _stopped(attempt: Attempt, error: BaseException | None) -> Outcome:
    """The outcome of an attempt that ended because it was asked to."""
    match attempt.stop:
        case Stop.CANCEL:
            return Cancelled()
        case Stop.DRAIN:
            return GivenBack(Reason.DRAINED)
        case Stop.TIMEOUT | Stop.TOTAL_TIMEOUT | Stop.PROGRESS_TIMEOUT:
            return limits.timed_out(attempt.stop, attempt.rules)
        case None:
            return Failed(described(error or asyncio.CancelledError()))
