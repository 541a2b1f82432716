"""Heartbeats keep the leases of a supervisor's workers alive.

The store decides by its own clock whether a lease still holds. A supervisor counts by its monotonic clock: from the
moment at which the store began the last acknowledged heartbeat, plus the lease, minus a margin. The store reads its
clock after that moment, so the supervisor gives up a lease before another may take over the executions, even if the
store cannot be reached or this process was stopped for a while.

SQLite has one write lock for all processes, and a large submission on a busy machine may hold it for longer than a
lease. No heartbeat can be written meanwhile, but no worker can be declared dead either. A supervisor declares workers
dead only if its own heartbeats were written regularly for a whole lease (`steady_s`), and it declares only those whose
lease had expired while that was so. If no transaction was committed for half a lease (`commits`), every supervisor has
missed its heartbeats, and none declares a death within the next lease. So workers whose heartbeat waits keep their
lease, as if it had been acknowledged now: see decision 0011.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from rota.clock import Clock
from rota.domain.errors import StoreError
from rota.engine.loop import Loop
from rota.engine.port import SupervisorStore
from rota.ops import fleet
from rota.ops.fleet import BEATS_PER_LEASE

MARGIN = 0.1
STUCK = 0.35
"""The part of a lease after which a beat without an answer means trouble: a child that holds the write lock and does
nothing with it is killed."""
GAP, GAP_WITH_ONE_LOCK = 0.75, 0.5
"""More than this part of a lease from the start of one beat to the acknowledgement of the next interrupts `steady_s`.

A beat is due every quarter. Where there is one write lock, a supervisor must find out that no beat of any other got
through before 1 - MARGIN of its own lease has passed.
"""
CHECKS_PER_LEASE = 20


class Heart:
    """Sends heartbeats for a set of workers. `lost(worker, why)` is called once for each worker whose lease is lost.

    `waiting(waited_s)` is called at every check while a beat has no answer, `drain(worker)` for a worker that was asked
    to drain, `renewed(worker, until)` whenever a lease holds for longer, and `failing(why)` when leases cannot be
    renewed for now. `memory` are the bytes that each worker has in use.
    """

    def __init__(
        self,
        store: SupervisorStore,
        clock: Clock,
        lease_s: float,
        lost: Callable[[int, str], None],
        waiting: Callable[[float], Awaitable[None]] | None = None,
        drain: Callable[[int], None] = lambda _: None,
        renewed: Callable[[int, float], None] = lambda worker, until: None,
        failing: Callable[[str], None] = lambda why: None,
        memory: Callable[[], Mapping[int, int]] = dict,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease_s = lease_s
        self._lost = lost
        self._waiting = waiting
        self._drain, self._renewed, self._failing, self._memory = drain, renewed, failing, memory
        self._sent_at: float | None = None
        self._seen: tuple[int | None, float] = (None, 0.0)
        """The answer of `store.commits()`, and when it was first seen."""
        self._failure = self._said = ""
        self._steady_since: float | None = None
        self._begun_at = 0.0
        """When the store began the last acknowledged beat, or earlier."""
        self._gap = GAP
        self._good_until: dict[int, float] = {}
        self.loop = Loop("heart", self.step)
        self.watch = Loop("lease watch", self.check)

    def add(self, worker: int, joined_at: float) -> None:
        """`joined_at` is our monotonic time when the store began to insert the worker, or earlier."""
        self._good_until[worker] = self._until(joined_at)
        if not self._failure:
            self._acknowledge(joined_at)  # Joining writes to the database, as a heartbeat does.

    def tell(self, worker: int) -> None:
        """Calls `renewed` with the lease of a worker, as after every beat."""
        if worker in self._good_until:
            self._renewed(worker, self._good_until[worker])

    def is_over(self, worker: int) -> bool:
        """Whether the lease of a worker has ended, by our clock. True for a worker that has lost it."""
        return self._clock.monotonic() >= self._good_until.get(worker, 0.0)

    def steady_s(self) -> float:
        """For how long every heartbeat has been written in time.

        If that is less than a lease, an expired lease proves nothing: the heartbeats of the other workers may have
        failed as ours did.
        """
        now = self._clock.monotonic()
        return 0.0 if self._steady_since is None or self._is_late(now) else now - self._steady_since

    def remove(self, worker: int) -> None:
        self._good_until.pop(worker, None)

    async def step(self) -> float | None:
        if self._good_until:
            self._sent_at = sent_at = self._clock.monotonic()
            asked = list(self._good_until)
            try:
                alive, waited_s = await self._store.beat(asked, self._lease_s, self._memory())
            except StoreError as error:
                self._failure, self._steady_since = " ".join(str(error).split()), None
                raise
            finally:
                self._sent_at = None
            self._failure = self._said = ""
            begun_at = sent_at + waited_s
            self._acknowledge(begun_at)
            for worker in asked:
                if worker in alive:
                    self._renew(worker, begun_at)
                    if alive[worker] == fleet.TO_DRAIN:
                        self._drain(worker)
                else:
                    self._lose(worker, "another supervisor has declared it dead")
            return max(0.0, begun_at + self._lease_s / BEATS_PER_LEASE - self._clock.monotonic())
        return self._lease_s / BEATS_PER_LEASE

    async def check(self) -> float | None:
        """Checks the leases, in a loop separate from the beats, which may hang in the store."""
        now = self._clock.monotonic()
        if self._sent_at is not None and self._waiting is not None:
            await self._waiting(now - self._sent_at)
        await self._watch_commits()
        now = self._clock.monotonic()
        trouble = self._trouble(now)
        if trouble != self._said:
            self._said = trouble
            self._failing(trouble)
        for worker, until in list(self._good_until.items()):
            if now >= until:
                self._lose(worker, trouble or "the supervisor was stopped, or had no processor")
        return self._lease_s / CHECKS_PER_LEASE

    async def _watch_commits(self) -> None:
        """While a beat waits, keeps the leases if no process could write, and so none could declare a worker dead."""
        asked_at = self._clock.monotonic()
        commits = await self._store.commits()
        if commits is not None:
            self._gap = GAP_WITH_ONE_LOCK
        before, since = self._seen
        if commits is None or commits != before:
            self._seen = (commits, self._clock.monotonic())
        elif self._sent_at is not None and asked_at - since > GAP_WITH_ONE_LOCK * self._lease_s:
            for worker, until in list(self._good_until.items()):
                if self._clock.monotonic() < until:
                    self._renew(worker, asked_at)

    def _acknowledge(self, begun_at: float) -> None:
        now = self._clock.monotonic()
        if self._steady_since is None or self._is_late(now):
            self._steady_since = now
        self._begun_at = max(self._begun_at, begun_at)

    def _is_late(self, now: float) -> bool:
        return now - self._begun_at > self._gap * self._lease_s

    def _trouble(self, now: float) -> str:
        """Why leases cannot be renewed for now; empty if they can."""
        if not self._failure and self._sent_at is not None and now - self._sent_at >= STUCK * self._lease_s:
            return "the database does not answer"
        return self._failure

    def _renew(self, worker: int, begun_at: float) -> None:
        if worker in self._good_until:
            self._good_until[worker] = max(self._good_until[worker], self._until(begun_at))
            self.tell(worker)

    def _lose(self, worker: int, why: str) -> None:
        if self._good_until.pop(worker, None) is not None:
            self._lost(worker, why)

    def _until(self, begun_at: float) -> float:
        return begun_at + self._lease_s * (1 - MARGIN)
