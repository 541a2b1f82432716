"""The programs of a run: which of them live, which the run has killed or stopped, and their replacements."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from tests.kill.fleet import DEATH_S, Fleet, Program
from tests.kill.processes import Process, children_of, wait_until

LEASES_STOPPED = 3
DRAIN_S = 90.0


class Death(msgspec.Struct, frozen=True):
    """A process that was made to die, by a signal of ours or with another one; times in microseconds since 1970."""

    pid: int
    at: int
    kind: str = ""
    worker: int | None = None
    """The worker process below which it was, or which it was."""
    parent: int | None = None


class Pause(msgspec.Struct, frozen=True):
    """Processes that were stopped for a while."""

    workers: list[int]
    """The worker processes that were stopped, or whose supervisor was."""
    kind: str
    begun_at: int
    ended_at: int
    supervisor: int | None = None


class _Stopped(msgspec.Struct):
    program: Program
    processes: list[Process]
    due_at: float
    kind: StrEnum
    workers: list[int]
    begun_at: int


class Crew:
    """Kills, stops and continues processes on request, and keeps the fleet at its size."""

    def __init__(self, fleet: Fleet, chance: random.Random, lease_s: float, supervisors: int, enqueuers: int) -> None:
        self._fleet = fleet
        self._chance = chance
        self._lease_s = lease_s
        self._stopped: list[_Stopped] = []
        self._draining: dict[Program, float] = {}
        self._doomed: list[tuple[Process, float]] = []
        self._killed: set[Process] = set()
        self._generation = 0
        self.kills: Counter[StrEnum] = Counter()
        self.stops: Counter[StrEnum] = Counter()
        self.deaths: list[Death] = []
        self.pauses: list[Pause] = []
        self.problems: list[str] = []
        # Started first: an effect must find it.
        self.receiver = fleet.receiver()
        self.supervisors = [self._next_supervisor() for _ in range(supervisors)]
        self.enqueuers = [fleet.enqueuer(f"enqueuer-{number}") for number in range(enqueuers)]

    def tend(self) -> None:
        """Continues processes that were stopped long enough, replaces dead ones, and looks for surviving children."""
        for stopped in [stopped for stopped in self._stopped if time.monotonic() >= stopped.due_at]:
            self._continue(stopped)
        self.supervisors = [self._alive(program) or self._next_supervisor() for program in self.supervisors]
        self.enqueuers = [self._alive(program) or self._fleet.enqueuer(program.name) for program in self.enqueuers]
        self._watch_the_doomed()

    def rest(self) -> None:
        """Ends the kills: continues all processes, and waits until those that had to die are dead."""
        for stopped in list(self._stopped):
            self._continue(stopped)
        self.tend()
        wait_until(self._watch_the_doomed, DEATH_S, "the children of killed supervisors to end")
        wait_until(self._has_drained, DRAIN_S, "the supervisors that drain")

    def kill_child(self, supervisor: Program, kind: StrEnum) -> bool:
        children = supervisor.children()
        killed = False
        if children:
            victim = self._chance.choice(children)
            killed = self.kill(victim, kind, worker=victim.pid)
        self.let_go(children)
        return killed

    def kill_supervisor(self, supervisor: Program, kind: StrEnum) -> bool:
        """Its children must die with it, which is for them to arrange."""
        children = supervisor.children()
        killed = self.kill(supervisor.process, kind)
        for child in children:
            self.deaths.append(Death(child.pid, now(), kind, child.pid))
            self._doomed.append((child, time.monotonic() + DEATH_S))
        return killed

    def kill_both(self, supervisor: Program, kind: StrEnum) -> None:
        children = supervisor.children()
        victims = [supervisor.process, *children]
        self._chance.shuffle(victims)
        for victim in victims:
            self.kill(victim, kind, worker=victim.pid)
        self.let_go(children)

    def kill_twice(self, place: int, kind: StrEnum) -> None:
        """A process, and within the second the one that took its place."""
        if self._chance.random() < 0.5:
            self.kill_supervisor(self.supervisors[place], kind)
            self.tend()
            self.pause(0.6)
            self.kill_supervisor(self.supervisors[place], kind)
        elif self.kill_child(self.supervisors[place], kind):
            self.pause(0.6)
            self.kill_child(self.supervisors[place], kind)

    def kill_starting(self, place: int, kind: StrEnum) -> None:
        """A supervisor in its first moments: before its child exists, before it is tethered, before it has joined."""
        self.kill_supervisor(self.supervisors[place], kind)
        self.tend()
        self.pause(0.8)
        if self._chance.random() < 0.5:
            self.kill_supervisor(self.supervisors[place], kind)
        else:
            self.kill_child(self.supervisors[place], kind)

    def kill(self, process: Process, kind: StrEnum, worker: int | None = None, parent: int | None = None) -> bool:
        death = Death(process.pid, now(), kind, worker, parent)
        if not process.signal(signal.SIGKILL):
            return False
        self._killed.add(process)
        self.deaths.append(death)
        self.kills[kind] += 1
        return True

    def let_go(self, processes: Sequence[Process]) -> None:
        for process in processes:
            self._killed.discard(process)
            process.close()

    def stopped(self, program: Program, processes: list[Process], kind: StrEnum) -> None:
        """Records processes that were sent a SIGSTOP; `tend` continues them after three leases."""
        if processes:
            program.is_stopped = True
            self.stops[kind] += 1
            due_at = time.monotonic() + LEASES_STOPPED * self._lease_s
            self._stopped.append(_Stopped(program, processes, due_at, kind, children_of(program.pid), now()))

    def drain(self, supervisor: Program, kind: StrEnum) -> None:
        """As a rolling deploy does: it ends in order, and then another takes its place."""
        if supervisor not in self._draining and supervisor.process.signal(signal.SIGTERM):
            self._draining[supervisor] = time.monotonic() + DRAIN_S
            self.stops[kind] += 1

    def is_draining(self, program: Program) -> bool:
        return program in self._draining

    def victim(self) -> Program | None:
        free = [supervisor for supervisor in self.supervisors if not supervisor.is_stopped]
        return self._chance.choice(free) if free else None

    def pause(self, most_s: float) -> None:
        time.sleep(self._chance.uniform(0, most_s))  # sleep: the moment of the next blow is random

    def _continue(self, stopped: _Stopped) -> None:
        """The children a moment before the supervisor, which will kill them: time to act on what they still believe."""
        for process in stopped.processes:
            if process is stopped.program.process and len(stopped.processes) > 1:
                self.pause(0.3)
            process.signal(signal.SIGCONT)
            if process is not stopped.program.process:
                process.close()
        stopped.program.is_stopped = False
        self._stopped.remove(stopped)
        pid = stopped.program.pid
        self.pauses.append(Pause(stopped.workers, stopped.kind, stopped.begun_at, now(), pid))

    def _alive(self, program: Program) -> Program | None:
        # A signal takes a moment to kill: what was killed is not taken for alive meanwhile.
        code = program.wait(DEATH_S) if program.process in self._killed else program.code()
        if code is None:
            if time.monotonic() > self._draining.get(program, float("inf")):
                self.problems.append(f"{program.name} was drained and did not end within {DRAIN_S:g} s")
                program.process.signal(signal.SIGKILL)
                self._killed.add(program.process)
            return program
        # A supervisor that gets the signal before it has installed a handler dies by it, and holds no executions yet.
        if code != -signal.SIGKILL and not (code in (0, -signal.SIGTERM) and program in self._draining):
            self.problems.append(f"{program.name} ended by itself with exit code {code}: {_last_line(program)}")
        program.close()
        self._draining.pop(program, None)
        self._killed.discard(program.process)
        return None

    def _has_drained(self) -> bool:
        self.tend()
        return not self._draining

    def _next_supervisor(self) -> Program:
        self._generation += 1
        return self._fleet.supervisor(f"supervisor-{self._generation}")

    def _watch_the_doomed(self) -> bool:
        """Whether all are gone that had to die with their supervisor."""
        left = []
        for process, due_at in self._doomed:
            if not process.is_gone():
                if time.monotonic() < due_at:
                    left.append((process, due_at))
                    continue
                self.problems.append(f"process {process.pid} outlived its supervisor by {DEATH_S:g} s")
            process.close()
        self._doomed = left
        return not left


def now() -> int:
    return time.time_ns() // 1000


def _last_line(program: Program) -> str:
    lines = program.log.read_text(errors="replace").splitlines()
    return lines[-1] if lines else "it has logged nothing"
