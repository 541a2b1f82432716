"""Who is killed when. Kinds are dealt from a shuffled deck, so that a run of one deck has seen every kind of death."""

from __future__ import annotations

import random
import signal
from enum import StrEnum

from tests.kill.crew import Crew


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


class Killer:
    """Deals the cards; the crew carries them out."""

    def __init__(self, crew: Crew, chance: random.Random) -> None:
        self.crew = crew
        self._chance = chance
        # Each kind once, so that a short run has seen them all.
        self._deck = list(DECK)
        chance.shuffle(self._deck)

    @property
    def count(self) -> int:
        """SIGKILLs that reached a worker process, supervisor or child."""
        return sum(count for kind, count in self.crew.kills.items() if kind is not Kind.ENQUEUER)

    def act(self) -> None:
        """One card of the deck."""
        if not self._deck:
            self._deck = [kind for kind, times in DECK.items() for _ in range(times)]
            self._chance.shuffle(self._deck)
        kind = self._deck.pop()
        before = self._times(kind)
        self._carry_out(kind)
        if self._times(kind) == before:
            self._deck.insert(0, kind)  # All possible victims are starting or stopped: its time comes later.
            self.crew.pause(0.2)
        self.crew.tend()

    def _times(self, kind: Kind) -> int:
        return self.crew.kills[kind] + self.crew.stops[kind]

    def _carry_out(self, kind: Kind) -> None:
        match kind:
            case Kind.STOP_CHILD | Kind.STOP_SUPERVISOR | Kind.STOP_BOTH:
                self._stop(kind)
            case Kind.ENQUEUER:
                self.crew.kill(self._chance.choice(self.crew.enqueuers).process, kind)
            case Kind.ALL:
                for supervisor in self.crew.supervisors:
                    self.crew.kill_both(supervisor, kind)
            case Kind.TWICE | Kind.STARTING:
                self._kill_at_a_place(kind)
            case Kind.CHILD | Kind.SUPERVISOR | Kind.BOTH:
                self._kill(kind)

    def _kill(self, kind: Kind) -> None:
        supervisor = self.crew.victim()
        if supervisor is None:
            return
        if kind is Kind.CHILD:
            self.crew.kill_child(supervisor, kind)
        elif kind is Kind.BOTH:
            self.crew.kill_both(supervisor, kind)
        else:
            self.crew.kill_supervisor(supervisor, kind)

    def _kill_at_a_place(self, kind: Kind) -> None:
        place = self._chance.randrange(len(self.crew.supervisors))
        if self.crew.supervisors[place].is_stopped:
            return
        if kind is Kind.TWICE:
            self.crew.kill_twice(place, kind)
        else:
            self.crew.kill_starting(place, kind)

    def _stop(self, kind: Kind) -> None:
        supervisor = self.crew.victim()
        if supervisor is None:
            return
        children = [] if kind is Kind.STOP_SUPERVISOR else supervisor.children()
        stopped = [child for child in children if child.signal(signal.SIGSTOP)]
        if kind is not Kind.STOP_CHILD and supervisor.process.signal(signal.SIGSTOP):
            stopped.append(supervisor.process)
        if kind is Kind.STOP_BOTH:
            stopped += [spawner for spawner in supervisor.spawners() if spawner.signal(signal.SIGSTOP)]
        self.crew.stopped(supervisor, stopped, kind)
