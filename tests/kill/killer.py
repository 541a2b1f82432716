"""Who is killed when. Kinds are dealt from a shuffled deck, so that a run of one deck has seen every kind of death."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from enum import StrEnum

import msgspec

from tests.kill.fleet import DEATH_S, Fleet, Program
from tests.kill.processes import Process, wait_until

LEASES_STOPPED = 3


class Kind(StrEnum):
    """A way for processes to die, or to be stopped for three leases."""

    CHILD = "child"
    SUPERVISOR = "supervisor"
    BOTH = "supervisor and children"
    TWICE = "twice within a second"
    STARTING = "while starting"
    ALL = "all at once"
    ENQUEUER = "enqueuer"
    STOP_CHILD = "stop child"
    STOP_SUPERVISOR = "stop supervisor"
    STOP_BOTH = "stop supervisor and children"


DECK = {
    Kind.CHILD: 18,
    Kind.SUPERVISOR: 4,
    Kind.BOTH: 3,
    Kind.TWICE: 3,
    Kind.STARTING: 3,
    Kind.ALL: 1,
    Kind.ENQUEUER: 2,
    Kind.STOP_CHILD: 1,
    Kind.STOP_SUPERVISOR: 1,
    Kind.STOP_BOTH: 1,
}


class Death(msgspec.Struct, frozen=True):
    """A process that was made to die, by a signal of ours or with its supervisor; times in microseconds since 1970."""

    pid: int
    at: int


class _Stopped(msgspec.Struct):
    program: Program
    processes: list[Process]
    due_at: float
    kind: Kind


class Killer:
    """Kills, stops and lets go on; keeps the fleet at its size."""

    def __init__(self, fleet: Fleet, chance: random.Random, lease_s: float, supervisors: int, enqueuers: int) -> None:
        self._fleet = fleet
        self._chance = chance
        self._lease_s = lease_s
        self._deck: list[Kind] = []
        self._stopped: list[_Stopped] = []
        self._doomed: list[tuple[Process, float]] = []
        self._killed: set[Process] = set()
        self._generation = 0
        self.kills: Counter[Kind] = Counter()
        self.stops: Counter[Kind] = Counter()
        self.deaths: list[Death] = []
        self.problems: list[str] = []
        self.supervisors = [self._next_supervisor() for _ in range(supervisors)]
        self.enqueuers = [fleet.enqueuer(f"enqueuer-{number}") for number in range(enqueuers)]

    @property
    def count(self) -> int:
        """SIGKILLs that reached a worker process, supervisor or child."""
        return sum(count for kind, count in self.kills.items() if kind is not Kind.ENQUEUER)

    def act(self) -> None:
        """One card of the deck."""
        if not self._deck:
            self._deck = [kind for kind, times in DECK.items() for _ in range(times)]
            self._chance.shuffle(self._deck)
        kind = self._deck.pop()
        match kind:
            case Kind.STOP_CHILD | Kind.STOP_SUPERVISOR | Kind.STOP_BOTH:
                self._stop(kind)
            case Kind.ENQUEUER:
                self._kill_process(self._chance.choice(self.enqueuers).process, kind)
            case Kind.ALL:
                for supervisor in self.supervisors:
                    self._kill_both(supervisor, kind)
            case Kind.TWICE:
                self._kill_twice()
            case Kind.STARTING:
                self._kill_starting()
            case Kind.CHILD | Kind.SUPERVISOR | Kind.BOTH:
                self._kill(kind)
        self.tend()

    def tend(self) -> None:
        """Lets go on what was stopped long enough, replaces the dead, and looks for children that outlived them."""
        for stopped in [stopped for stopped in self._stopped if time.monotonic() >= stopped.due_at]:
            self._continue(stopped)
        self.supervisors = [self._alive(program) or self._next_supervisor() for program in self.supervisors]
        self.enqueuers = [self._alive(program) or self._fleet.enqueuer(program.name) for program in self.enqueuers]
        self._watch_the_doomed()

    def rest(self) -> None:
        """No more deaths: everybody goes on, and what had to die is dead."""
        for stopped in list(self._stopped):
            self._continue(stopped)
        self.tend()
        wait_until(self._watch_the_doomed, DEATH_S, "the children of killed supervisors to end")

    def _kill(self, kind: Kind) -> None:
        supervisor = self._victim()
        if supervisor is None:
            return
        if kind is Kind.CHILD:
            self._kill_child(supervisor, kind)
        elif kind is Kind.BOTH:
            self._kill_both(supervisor, kind)
        else:
            self._kill_supervisor(supervisor, kind)

    def _kill_child(self, supervisor: Program, kind: Kind) -> bool:
        children = supervisor.children()
        killed = bool(children) and self._kill_process(self._chance.choice(children), kind)
        self._let_go(children)
        return killed

    def _kill_supervisor(self, supervisor: Program, kind: Kind) -> bool:
        """Its children must die with it, which is for them to arrange."""
        children = supervisor.children()
        killed = self._kill_process(supervisor.process, kind)
        for child in children:
            self.deaths.append(_death(child))
            self._doomed.append((child, time.monotonic() + DEATH_S))
        return killed

    def _kill_both(self, supervisor: Program, kind: Kind) -> None:
        children = supervisor.children()
        victims = [supervisor.process, *children]
        self._chance.shuffle(victims)
        for victim in victims:
            self._kill_process(victim, kind)
        self._let_go(children)

    def _kill_twice(self) -> None:
        """A process, and within the second the one that took its place."""
        place = self._chance.randrange(len(self.supervisors))
        if self.supervisors[place].is_stopped:
            return
        if self._chance.random() < 0.5:
            self._kill_supervisor(self.supervisors[place], Kind.TWICE)
            self.tend()
            self._pause(0.6)
            self._kill_supervisor(self.supervisors[place], Kind.TWICE)
        elif self._kill_child(self.supervisors[place], Kind.TWICE):
            self._pause(0.6)
            self._kill_child(self.supervisors[place], Kind.TWICE)

    def _kill_starting(self) -> None:
        """A supervisor in its first moments: before its child exists, before it is tethered, before it has joined."""
        place = self._chance.randrange(len(self.supervisors))
        if self.supervisors[place].is_stopped:
            return
        self._kill_supervisor(self.supervisors[place], Kind.STARTING)
        self.tend()
        self._pause(0.8)
        if self._chance.random() < 0.5:
            self._kill_supervisor(self.supervisors[place], Kind.STARTING)
        else:
            self._kill_child(self.supervisors[place], Kind.STARTING)

    def _stop(self, kind: Kind) -> None:
        supervisor = self._victim()
        if supervisor is None:
            return
        children = [] if kind is Kind.STOP_SUPERVISOR else supervisor.children()
        stopped = [child for child in children if child.signal(signal.SIGSTOP)]
        if kind is not Kind.STOP_CHILD and supervisor.process.signal(signal.SIGSTOP):
            stopped.append(supervisor.process)
        if stopped:
            supervisor.is_stopped = True
            self.stops[kind] += 1
            due_at = time.monotonic() + LEASES_STOPPED * self._lease_s
            self._stopped.append(_Stopped(supervisor, stopped, due_at, kind))

    def _continue(self, stopped: _Stopped) -> None:
        """The children a moment before the supervisor, which will kill them: time to act on what they still believe."""
        for process in stopped.processes:
            if process is stopped.program.process and len(stopped.processes) > 1:
                self._pause(0.3)
            process.signal(signal.SIGCONT)
            if process is not stopped.program.process:
                process.close()
        stopped.program.is_stopped = False
        self._stopped.remove(stopped)

    def _kill_process(self, process: Process, kind: Kind) -> bool:
        death = _death(process)
        if not process.signal(signal.SIGKILL):
            return False
        self._killed.add(process)
        self.deaths.append(death)
        self.kills[kind] += 1
        return True

    def _let_go(self, children: list[Process]) -> None:
        for child in children:
            self._killed.discard(child)
            child.close()

    def _victim(self) -> Program | None:
        free = [supervisor for supervisor in self.supervisors if not supervisor.is_stopped]
        return self._chance.choice(free) if free else None

    def _pause(self, most_s: float) -> None:
        time.sleep(self._chance.uniform(0, most_s))  # sleep: the moment of the next blow is random

    def _alive(self, program: Program) -> Program | None:
        # A signal takes a moment to kill: what was killed is not taken for alive meanwhile.
        code = program.wait(DEATH_S) if program.process in self._killed else program.code()
        if code is None:
            return program
        if code != -signal.SIGKILL:
            self.problems.append(f"{program.name} ended by itself with exit code {code}")
        program.close()
        self._killed.discard(program.process)
        return None

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


def _death(process: Process) -> Death:
    return Death(process.pid, time.time_ns() // 1000)
