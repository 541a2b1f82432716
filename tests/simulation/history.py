"""What a run leaves behind for the checker: values only."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rota.domain.lifecycle import Rules
from rota.ops.submission import Header, Item
from rota.store.hints import Hint
from tests.simulation.faults import Fault

Row = dict[str, Any]


@dataclass(slots=True)
class Change:
    """One row that an operation inserted (+), updated (~) or deleted (-)."""

    table: str
    kind: str
    row: Row


@dataclass(slots=True)
class Operation:
    """One committed transaction that changed something, or that refused stale reports."""

    name: str
    at: float
    """Virtual seconds."""
    now: int
    """The database's time."""
    caller: str
    args: tuple[Any, ...]
    result: Any
    changes: list[Change] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    """The hints that were sent after the commit."""


@dataclass(slots=True)
class Try:
    """One call of a client. `told` is what it came to know."""

    at: float
    told: str
    """accepted, refused, failed (nothing happened) or unsure (the reply was lost)."""
    detail: str = ""


@dataclass(slots=True)
class Submission:
    """What a client enqueued, and the answers that it got."""

    header: Header
    items: list[Item]
    tries: list[Try] = field(default_factory=list)
    accepted: dict[str, str] = field(default_factory=dict)
    """From the id that the client made to the id that answers for it."""


@dataclass(slots=True)
class Order:
    """Anything else that a client asked for: cancel, replay, repeat, discard."""

    verb: str
    ids: list[str]
    new_ids: list[str]
    tries: list[Try] = field(default_factory=list)
    answer: Any = None


@dataclass(slots=True)
class Body:
    """One start of user code."""

    id: str
    fence: int
    job: str
    worker: int
    started_at: float
    ended_at: float | None = None
    is_deaf: bool = False
    """It does not stop when it is asked to."""


@dataclass(slots=True)
class Effect:
    """Something that user code did outside, with its fence. The outside refuses a fence below one it has seen."""

    id: str
    fence: int
    at: float
    accepted: bool


@dataclass(slots=True)
class Incarnation:
    """One life of a child process."""

    worker: int
    name: str
    started_at: float
    ended_at: float | None = None
    ending: str = ""
    concurrency: int = 0
    queues: list[str] | None = None
    missing: frozenset[str] = frozenset()
    """Jobs that its code does not have yet."""
    draining_at: float = math.inf
    """When it was asked to leave, or decided to."""
    stops: list[tuple[float, float]] = field(default_factory=list)
    """When it, or the supervisor that watches over it, stood still."""


@dataclass(slots=True)
class Heard:
    """A worker got a hint about a lane."""

    worker: int
    lane: int
    rank: int
    at: float


@dataclass(slots=True)
class Trouble:
    """A call that failed, or that took far longer than usual."""

    caller: str
    start: float
    end: float


@dataclass(slots=True)
class History:
    """The three witnesses of one run, and what else the checker must know to judge them."""

    seed: int
    database: str
    lease_s: float
    poll_s: float
    rules: dict[str, Rules]
    depths: dict[str, int]
    """The maximum depth of the queues that have one."""
    submissions: list[Submission] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    incarnations: list[Incarnation] = field(default_factory=list)
    jumps: list[tuple[float, float]] = field(default_factory=list)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    heard: list[Heard] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    faults: Counter[Fault] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    """What should never have happened: errors in loops, tasks that died."""
    healed_at: float = 0.0
    ended_at: float | None = None
    """When everything had ended; None if it had not within the limit."""
    has_runs: bool = False
    """Whether workflows were declared."""

    @property
    def steps(self) -> set[str]:
        """The executions that are steps of runs."""
        return {row["id"] for row in self.tables["execution"] if row["run"] is not None}
