"""What can go wrong, and how often it does in one run.

A run does not suffer from everything at once: its seed draws which kinds of fault there are at all. Calm runs find
what storms hide, because they leave nothing to blame.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """Every kind; a set of runs in which one of them never happened has not tested enough."""

    # A call to the store.
    CALL_FAILED = "call failed before it reached the store"
    STATEMENT_FAILED = "a statement inside the operation failed"
    STATEMENT_REFUSED = "a statement inside the operation failed with an error that is not an outage"
    COMMIT_FAILED = "the commit failed"
    REPLY_LOST = "committed, but the reply was lost"
    REPLY_LATE = "the reply came late"
    COMMIT_LATE = "committed long after it began"
    # The network and the database as a whole.
    BLACK_HOLE = "a machine's calls vanish"
    DEAF = "a machine's calls arrive, the replies vanish"
    OUTAGE = "the database is down for everybody"
    # Hints.
    HINT_LOST = "hint lost"
    HINT_DOUBLED = "hint doubled"
    HINT_LATE = "hint late"
    # Processes.
    CHILD_KILLED = "child killed"
    MACHINE_KILLED = "machine killed"
    ALL_KILLED = "all machines killed at once"
    CHILD_STOPPED = "child stopped for a while"
    SUPERVISOR_STOPPED = "supervisor stopped for a while"
    MACHINE_STOPPED = "machine stopped for a while"
    BODY_KILLED = "a job killed its process"
    DRAINED = "machine drained"
    HURRIED = "machine drained in a hurry"
    FORGED = "a child reported the execution of another worker"
    CLIENT_GAVE_UP = "a client gave up without knowing"
    # Time.
    CLOCK_FORWARD = "the database's clock jumped ahead"
    CLOCK_BACK = "the database's clock jumped back"


CALL_FAULTS = {
    Fault.CALL_FAILED: 0.04,
    Fault.STATEMENT_FAILED: 0.04,
    Fault.STATEMENT_REFUSED: 0.01,
    Fault.COMMIT_FAILED: 0.03,
    Fault.REPLY_LOST: 0.05,
    Fault.REPLY_LATE: 0.025,
}
HINT_FAULTS = {Fault.HINT_LOST: 0.5, Fault.HINT_DOUBLED: 0.2, Fault.HINT_LATE: 0.2}
EVENTS = {
    Fault.BLACK_HOLE: 2,
    Fault.DEAF: 2,
    Fault.OUTAGE: 1,
    Fault.CHILD_KILLED: 3,
    Fault.MACHINE_KILLED: 3,
    Fault.ALL_KILLED: 1,
    Fault.CHILD_STOPPED: 2,
    Fault.SUPERVISOR_STOPPED: 1,
    Fault.MACHINE_STOPPED: 4,
    Fault.DRAINED: 3,
    Fault.HURRIED: 1,
    Fault.FORGED: 3,
    Fault.CLOCK_FORWARD: 3,
    Fault.CLOCK_BACK: 3,
}
"""What happens to machines and clocks, by weight."""


class Script:
    """Exactly one fault: the Nth call fails, or the Nth statement of all calls together."""

    def __init__(self, fault: Fault, nth: int) -> None:
        self.fault = fault
        self._left = nth

    @property
    def has_played(self) -> bool:
        return self._left <= 0

    def is_due(self) -> bool:
        """Counts one call or statement; whether this is the one."""
        self._left -= 1
        return self._left == 0


class Weather:
    """The faults of one run: which there are, how often they come, and that they stop when it clears."""

    def __init__(self, entropy: Random) -> None:
        self._entropy = entropy
        self.is_clear = False
        self.script: Script | None = None
        self.seen: Counter[Fault] = Counter()
        storm = entropy.choice([0.3, 0.6, 1.0])
        self.calls = self._some(CALL_FAULTS, storm)
        self.hints = self._some(HINT_FAULTS, storm)
        self.events = self._some({fault: float(weight) for fault, weight in EVENTS.items()}, storm)
        self.every_s = entropy.choice([2.0, 4.0, 8.0])
        """The mean time between two events."""
        self.slow = entropy.choice([0.0, 0.1, 0.3])
        """How many enqueues are committed late; also when the weather has cleared, because that is no fault."""
        self.kills_by_body = entropy.random() < storm

    @classmethod
    def scripted(cls, entropy: Random, script: Script) -> Weather:
        """Weather in which only one thing goes wrong."""
        weather = cls(entropy)
        weather.calls, weather.hints, weather.events = {}, {}, {}
        weather.slow = 0.0
        weather.script = script
        return weather

    def strike(self, entropy: Random) -> set[Fault]:
        """What happens to this call."""
        if self.script is not None:
            by_call = self.script.fault is not Fault.STATEMENT_FAILED
            return {self.script.fault} if by_call and self.script.is_due() else set()
        # Draws the same numbers whatever the weather, so that faults do not shift each other.
        drawn = {fault for fault in CALL_FAULTS if entropy.random() < self.calls.get(fault, 0.0)}
        return set() if self.is_clear else drawn

    def note(self, fault: Fault) -> None:
        self.seen[fault] += 1

    def _some(self, chances: dict[Fault, float], storm: float) -> dict[Fault, float]:
        return {fault: chance for fault, chance in chances.items() if self._entropy.random() < storm}
