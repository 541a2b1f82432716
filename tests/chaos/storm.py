"""The faults of a chaos run. Kinds are dealt from a shuffled deck; most cards hit what is cheap to start again.

A blow against a supervisor or an enqueuer is left out unless another one of them is up: a fleet without any of them
serves no client, which `all at once` tests often enough. A supervisor is up when it judges leases, one lease after
it has started: until then it cannot know whether the clock has jumped.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum

import psycopg

from tests.chaos import census
from tests.chaos.census import Orphans, Role, Someone
from tests.kill import databases
from tests.kill.crew import Crew, Death, now
from tests.kill.fleet import Program
from tests.kill.processes import Process, marked

START_S = 3.0
"""A program that was started so long ago is taken to be up; a supervisor judges leases one lease after that."""
LOOK_S = 0.25


class Fault(StrEnum):
    """What happens to processes."""

    COMMAND = "command"
    GRANDCHILD = "grandchild of a command"
    JOB_PROCESS = "process of an isolated job"
    SPAWNER = "spawner"
    CHILD = "worker process"
    WITH_SPAWNER = "worker process with its spawner"
    SUPERVISOR = "supervisor"
    BOTH = "supervisor and children"
    ENQUEUER = "enqueuer"
    TWICE = "twice within a second"
    STARTING = "while starting"
    ALL = "all at once"
    STOP_CHILD = "worker process stopped"
    STOP_SUPERVISOR = "supervisor stopped"
    STOP_BOTH = "supervisor and children stopped"
    DRAIN = "drained and replaced"
    TERMINATE = "connections terminated"


CHEAP = {Fault.COMMAND: 300, Fault.GRANDCHILD: 250}
"""What costs little to start again: most blows of a long run, fewer of a short one."""
DEAR = {
    Fault.JOB_PROCESS: 26,
    Fault.SPAWNER: 5,
    Fault.CHILD: 14,
    Fault.WITH_SPAWNER: 3,
    Fault.SUPERVISOR: 7,
    Fault.BOTH: 1,
    Fault.ENQUEUER: 12,
    Fault.TWICE: 3,
    Fault.STARTING: 2,
    Fault.ALL: 1,
    Fault.STOP_CHILD: 1,
    Fault.STOP_SUPERVISOR: 1,
    Fault.STOP_BOTH: 1,
    Fault.DRAIN: 4,
    Fault.TERMINATE: 12,
}
TERMINATED = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name LIKE 'rota %%' AND pid <> pg_backend_pid() AND pid %% 3 = %s
"""


class Storm:
    """Deals the cards, and watches what must be gone when others are."""

    def __init__(
        self, crew: Crew, chance: random.Random, url: str, mark: str, *, lease_s: float, cheap: float = 1.0
    ) -> None:
        """`cheap` says how many of the cheap cards are in the deck."""
        self.crew = crew
        self.orphans = Orphans()
        self.blackouts: list[int] = []
        """When everybody was killed at once."""
        self._chance = chance
        self._url = url
        self._mark = mark
        self._lease_s = lease_s
        self._cards = {**{fault: round(cheap * times) for fault, times in CHEAP.items()}, **DEAR}
        self._deck: list[Fault] = []
        self.dealt = 0
        self._looked_at = 0.0

    @property
    def count(self) -> int:
        """SIGKILLs that reached a process."""
        return sum(self.crew.kills.values())

    def act(self) -> None:
        """One card of the deck."""
        if not self._deck:
            self._deck = [fault for fault, times in self._cards.items() for _ in range(times)]
            self._chance.shuffle(self._deck)
        fault = self._deck.pop()
        self.dealt += 1
        match fault:
            case Fault.COMMAND | Fault.GRANDCHILD | Fault.JOB_PROCESS | Fault.SPAWNER | Fault.CHILD:
                self._kill_someone(fault)
            case Fault.WITH_SPAWNER:
                self._kill_with_spawner()
            case Fault.SUPERVISOR | Fault.BOTH | Fault.TWICE | Fault.STARTING | Fault.DRAIN:
                self._hit_supervisor(fault)
            case Fault.ENQUEUER:
                self._kill_enqueuer()
            case Fault.ALL:
                self._kill_all()
            case Fault.STOP_CHILD | Fault.STOP_SUPERVISOR | Fault.STOP_BOTH:
                self._stop(fault)
            case Fault.TERMINATE:
                self._terminate()
        self.tend()

    def tend(self) -> None:
        self.crew.tend()
        if time.monotonic() - self._looked_at >= LOOK_S:
            self._looked_at = time.monotonic()
            self.crew.problems += self.orphans.look(census.take(self.crew.supervisors))

    def close(self) -> None:
        self.orphans.close()

    def _kill_someone(self, fault: Fault) -> None:
        everybody = census.take([one for one in self.crew.supervisors if not one.is_stopped])
        role = {
            Fault.COMMAND: Role.COMMAND,
            Fault.GRANDCHILD: Role.GRANDCHILD,
            Fault.JOB_PROCESS: Role.JOB_PROCESS,
            Fault.SPAWNER: Role.SPAWNER,
            Fault.CHILD: Role.CHILD,
        }[fault]
        candidates = [someone for someone in everybody if someone.role is role]
        if candidates:
            victim = self._chance.choice(candidates)
            self._kill(victim, fault, everybody)

    def _kill(self, victim: Someone, fault: Fault, everybody: list[Someone]) -> None:
        process = census.pinned(victim)
        if process is None:
            return
        if self.crew.kill(process, fault, worker=victim.worker, parent=victim.parent):
            at = now()
            self.crew.deaths += [Death(other.pid, at, fault, other.worker) for other in census.below(victim, everybody)]
        self.crew.let_go([process])

    def _kill_with_spawner(self) -> None:
        """Neither has time to see to what commands have started; their supervisor has."""
        everybody = census.take([one for one in self.crew.supervisors if not one.is_stopped])
        spawners = [someone for someone in everybody if someone.role is Role.SPAWNER]
        if not spawners:
            return
        spawner = self._chance.choice(spawners)
        (worker,) = (someone for someone in everybody if someone.pid == spawner.worker)
        process = census.pinned(worker)
        if process is None:
            return
        process.signal(signal.SIGSTOP)
        self._kill(spawner, Fault.WITH_SPAWNER, everybody)
        self.crew.let_go([process])
        self._kill(worker, Fault.WITH_SPAWNER, everybody)

    def _hit_supervisor(self, fault: Fault) -> None:
        place = self._place()
        if place is None:
            return
        supervisor = self.crew.supervisors[place]
        with self._recorded(supervisor, fault):
            match fault:
                case Fault.SUPERVISOR:
                    self.crew.kill_supervisor(supervisor, fault)
                case Fault.BOTH:
                    self.crew.kill_both(supervisor, fault)
                case Fault.TWICE:
                    self.crew.kill_twice(place, fault)
                case Fault.STARTING:
                    self.crew.kill_starting(place, fault)
                case _:
                    self.crew.drain(supervisor, fault)

    @contextmanager
    def _recorded(self, supervisor: Program, fault: Fault) -> Iterator[None]:
        """What is below a killed supervisor dies as well."""
        everybody = census.take([supervisor])
        killed = self.crew.kills.total()
        yield
        if self.crew.kills.total() > killed:
            at = now()
            self.crew.deaths += [Death(someone.pid, at, fault, someone.worker) for someone in everybody]

    def _kill_enqueuer(self) -> None:
        victim = self._chance.choice(self.crew.enqueuers)
        if self._has_other(self.crew.enqueuers, victim, START_S):
            self.crew.kill(victim.process, Fault.ENQUEUER)

    def _kill_all(self) -> None:
        """Like a power cut: also what would have been looked for when its command was gone."""
        everybody = census.take(self.crew.supervisors)
        at = now()
        self.blackouts.append(at)
        self.crew.deaths += [Death(someone.pid, at, Fault.ALL, someone.worker) for someone in everybody]
        programs = [*self.crew.supervisors, *self.crew.enqueuers]
        self._chance.shuffle(programs)
        for program in programs:
            self.crew.kill(program.process, Fault.ALL)
        receiver = self.crew.receiver.pid
        for _ in range(2):
            others = set(marked(self._mark)) - {receiver} - {program.pid for program in programs}
            for pid in others:
                self._kill_marked(pid)

    def _kill_marked(self, pid: int) -> None:
        try:
            process = Process(pid)
        except ProcessLookupError:
            return
        if pid in marked(self._mark):
            self.crew.kill(process, Fault.ALL)
        self.crew.let_go([process])

    def _stop(self, fault: Fault) -> None:
        place = self._place()
        if place is None or any(one.is_stopped for one in self.crew.supervisors):
            return
        supervisor = self.crew.supervisors[place]
        # One that is about to start would only find that its patience is over.
        if self.crew.is_draining(supervisor) or time.monotonic() - supervisor.started_at < START_S + self._lease_s:
            return
        children = [] if fault is Fault.STOP_SUPERVISOR else supervisor.children()
        if fault is Fault.STOP_CHILD:
            self.crew.let_go(children[1:])
            children = children[:1]
        processes = [*children, *([] if fault is Fault.STOP_CHILD else [supervisor.process])]
        processes += supervisor.spawners() if fault is Fault.STOP_BOTH else []
        if processes:
            databases.stop(processes, self._url)
            self.crew.stopped(supervisor, processes, fault)

    def _terminate(self) -> None:
        """A third of the connections to the server, or so."""
        if self._url.startswith("sqlite"):
            return
        with closing(psycopg.connect(self._url, autocommit=True)) as connection:
            ended = connection.execute(TERMINATED, [self._chance.randrange(3)]).fetchall()
        self.crew.stops[Fault.TERMINATE] += len(ended)

    def _place(self) -> int | None:
        """A supervisor that runs, while another one is up."""
        free = [place for place, one in enumerate(self.crew.supervisors) if not one.is_stopped]
        up_s = START_S + self._lease_s
        places = [place for place in free if self._has_other(self.crew.supervisors, self.crew.supervisors[place], up_s)]
        return self._chance.choice(places) if places else None

    def _has_other(self, programs: list[Program], victim: Program, up_s: float) -> bool:
        up_since = time.monotonic() - up_s
        return any(
            other is not victim
            and not other.is_stopped
            and not self.crew.is_draining(other)
            and other.started_at < up_since
            for other in programs
        )
