"""How a supervisor and its children reach the store: verbs with values, and nothing else.

The loops of a child know only `WorkerStore`, those of a supervisor only `SupervisorStore` and `WorkerPort`.
`async_store` implements them over a database. A child calls its
verbs over a socket (`wire`), so the verbs of `WorkerStore` take and return values that msgspec can encode. None of them
names the worker, or what it serves: each port is bound to the worker that uses it. The simulation has a port that fails
and delays calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from rota.domain.note import Piece, State
from rota.domain.requirement import Room
from rota.domain.served import Served
from rota.domain.source import Source
from rota.domain.status import Reason
from rota.engine.loop import Loop
from rota.ops import deploy
from rota.ops.claim import Claimed, FinishedAndClaimed, Mark
from rota.ops.events.emit import Emission
from rota.ops.events.outbox import EmittedRows, Skipped
from rota.ops.finish import Finished
from rota.ops.fleet import Death, Newcomer
from rota.ops.upkeep import Chores
from rota.store.hints import Hint

Attempts = list[tuple[str, int]]
"""Ids with their fences."""


class Joined(NamedTuple):
    """The number of a new worker. The store began the call at least `waited_s` after it was made."""

    worker: int
    waited_s: float


class Beaten(NamedTuple):
    """The workers whose lease was renewed, with their state. `waited_s` as in `Joined`: see decision 0011."""

    alive: dict[int, str]
    waited_s: float


class WorkerStore(Protocol):
    """The verbs of a child, for its own worker. `wire` reads the types of a call from these annotations."""

    async def claim(self, slots: int, marks: Sequence[Mark] | None, room: Room) -> Claimed: ...

    async def claim_on_hint(self, slots: int, room: Room) -> Claimed | None:
        """Leaves a claim with the supervisor, which makes it when a hint comes. None if another call withdraws it."""

    async def finish(self, reports: Sequence[Finished]) -> list[str]:
        """Returns the ids of stale reports."""

    async def finish_and_claim(
        self, reports: Sequence[Finished], slots: int, marks: Sequence[Mark] | None, room: Room
    ) -> FinishedAndClaimed: ...

    async def write_notes(self, pieces: Sequence[Piece], states: Sequence[State]) -> list[str]: ...

    async def drain(self) -> None: ...

    async def tell_trouble(self, reasons: dict[str, str]) -> None:
        """Why processes cannot be started, by what they are for."""

    async def reconcile(self, named: Sequence[str], in_doubt: Attempts) -> Attempts: ...

    async def has_ready(self) -> bool: ...

    async def cancels(self) -> list[str]: ...

    async def holds_more(self, named: Sequence[str]) -> bool: ...


class WorkerPort(WorkerStore, Protocol):
    """The supervisor's end of the `WorkerStore` of one child: its verbs, and the claim that the child has left."""

    @property
    def has_left_claim(self) -> bool:
        """Whether a call of `claim_on_hint` waits for a hint."""

    def make_left_claim(self, hints: Sequence[Hint]) -> bool:
        """Begins the claim that the child has left. False if there is none, or if the child itself needs the hints."""

    def close(self) -> None:
        """The child is gone: its claim is withdrawn."""


class SupervisorStore(Protocol):
    """The verbs of a supervisor."""

    housekeeping: Sequence[Loop]
    """Loops for the database itself: partitions and pruning. Empty in the simulation."""

    def for_worker(self, worker: int, served: Served) -> WorkerPort: ...

    async def join(self, newcomer: Newcomer, lease_s: float) -> Joined: ...

    async def beat(self, workers: Sequence[int], lease_s: float, memory: Mapping[int, int]) -> Beaten: ...

    async def leave(self, worker: int, reason: Reason = Reason.DRAINED) -> None: ...

    async def declare_dead(self, worker: int, cause: str) -> Death: ...

    async def tell_standstill(self, worker: int, why: str) -> None: ...

    async def needs_of_ready(self, served: Served) -> list[str]:
        """The requirements of the ready executions that these workers serve."""

    async def look(
        self, lease_s: float, served: Served | None, shards: Sequence[tuple[int, int]], ours: Sequence[int]
    ) -> Chores: ...

    async def promote(self) -> int: ...

    async def expire(self) -> int: ...

    async def fire(self, shards: Sequence[tuple[int, int]]) -> int:
        """Fires some of the schedules that are due in these shards; returns how many."""

    async def release_lifted(self) -> int:
        """Releases some executions whose blocker was lifted; returns how many."""

    async def work_on_runs(self) -> int:
        """One step of work on a stopping run or a wide map; returns whether there was any."""

    async def sources(self, namespace: str, app: str, known: int | None) -> tuple[int, list[Source]] | None:
        """The number of the deploy in force, and the sources of events that it declares.

        None if there is no deploy yet, or if its number is `known`.
        """

    async def emit_files(self, namespace: str, emissions: Sequence[Emission]) -> None: ...

    async def emit_rows(self, namespace: str, table: str, most: int, skipped: Skipped) -> EmittedRows:
        """Emits up to `most` rows of an outbox table."""

    async def work_on_events(self) -> int:
        """Delivers an event to a chunk of its subscribers, or settles some waits; returns whether there was any."""

    async def work_on_actions(self) -> int:
        """Handles a chunk of an action on many things; returns whether there was one."""

    async def wake_forgotten(self) -> int: ...

    async def keep_statistics(self) -> bool:
        """Takes the samples that are due, and folds some counts; returns whether there may be more to fold."""

    async def rescue(self, lease_s: float, now: int, ours: Sequence[int]) -> Death: ...

    async def look_at_deploys(self, namespace: str, app: str, lease_s: float, ours: Sequence[int]) -> deploy.Look: ...

    async def settle_deploy(self, namespace: str, app: str, lease_s: float) -> None: ...

    async def commits(self) -> int | None:
        """A number that changes with every commit, if the database has one write lock for all processes."""

    async def blocker(self) -> int | None:
        """The process of this machine that holds that write lock, if one does."""

    def trouble(self) -> str | None:
        """Why the store can no longer be used, if that is so."""

    def listen(self, hear: Callable[[list[Hint]], None]) -> Callable[[], None]:
        """Calls `hear` with hints on the event loop, until the returned function is called."""

    def close(self) -> None: ...
