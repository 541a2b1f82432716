"""Implements the ports of `engine/port.py` on a database. Each call runs in a thread, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from msgspec.structs import replace

from rota.clock import Clock
from rota.domain import payload
from rota.domain.note import Piece, State
from rota.domain.requirement import Room
from rota.domain.served import Served
from rota.domain.source import Source
from rota.domain.status import Reason
from rota.engine.janitor import Janitor
from rota.engine.left_claim import LeftClaim
from rota.engine.loop import Loop
from rota.engine.port import Attempts, Beaten, Joined
from rota.ids import FIRST_ID, IdSource
from rota.ops import after_end, blockers, claim, deploy, finish, firing, fleet, notes, statistics, upkeep
from rota.ops.actions import work_on_actions
from rota.ops.claim import Claimed, FinishedAndClaimed, Mark
from rota.ops.events import emit, outbox
from rota.ops.events.chores import work_on_events
from rota.ops.events.emit import Emission
from rota.ops.events.outbox import EmittedRows, Skipped
from rota.ops.finish import Finished
from rota.ops.fleet import Death, Newcomer
from rota.ops.retention import KEPT_KIND
from rota.ops.runs import chores
from rota.ops.upkeep import Chores
from rota.store import load_reader, reader
from rota.store.hints import CancelAsked, Due, Hint, Ready
from rota.store.partitions import Keeper
from rota.store.port import Store, Tx, View

P = ParamSpec("P")
T = TypeVar("T")


class Calls(Protocol):
    """Carries out operations and queries without blocking the event loop. The simulation's calls fail and are late."""

    async def timed(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
        """The result, and for how many seconds the operation certainly waited before the database's clock was read."""

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...


class StoreCalls:
    """Operations go to the store's writer; reads run in two threads of their own, apart from user code's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="rota-read")

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return (await self.timed(op, *args, **kwargs))[0]

    async def timed(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
        future = self._store.submit(op, *args, **kwargs)
        if self._store.patience_s is None:
            return await asyncio.wrap_future(future), future.waited_s
        # Without a limit, a process that keeps the lock of the database would silently stop every loop.
        timer = asyncio.get_running_loop().call_later(self._store.patience_s, future.cancel)
        try:
            return await asyncio.wrap_future(future), future.waited_s
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                raise self._store.too_busy() from None
            raise
        finally:
            timer.cancel()

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = partial(self._store.read, query, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class WorkerCalls:
    """The verbs of one worker. Implements `engine.port.WorkerPort`."""

    def __init__(self, calls: Calls, worker: int, served: Served) -> None:
        self._calls = calls
        self._worker = worker
        self._served = served
        self._marks: dict[int, tuple[int, str]] = {}
        """The lanes that claims have found for this worker, and how far they have come in each."""
        self._left_claim = LeftClaim()

    async def claim(self, slots: int, marks: Sequence[Mark] | None, room: Room) -> Claimed:
        fewer = await self._left_claim.withdraw()
        slots = max(0, slots - fewer)
        claimed = await self._claim(slots, self._permitted(marks), room)
        return _with_more(claimed, slots) if fewer else claimed

    async def _claim(self, slots: int, marks: list[Mark] | None, room: Room) -> Claimed:
        claimed = await self._calls.transact(claim.claim, self._worker, self._served, slots, marks, room)
        self._learn(claimed)
        return claimed

    async def claim_on_hint(self, slots: int, room: Room) -> Claimed | None:
        return await self._left_claim.leave(lambda marks: self._claim(slots, marks, room))

    @property
    def has_left_claim(self) -> bool:
        return self._left_claim.waits

    def make_left_claim(self, hints: Sequence[Hint]) -> bool:
        """The child itself needs the hints of lanes that no claim has found for it, those of the supervisor's checks
        (`is_look`), and cancels."""
        if not self._left_claim.waits or len(hints) != 1:
            return False
        hint = hints[0]
        if not isinstance(hint, Ready) or hint.is_look or not hint.lanes.keys() <= self._marks.keys():
            return False
        starts = {lane: min(self._marks[lane], claim.just_before(rank)) for lane, rank in hint.lanes.items()}
        self._left_claim.make([(lane, *start) for lane, start in starts.items()])
        return True

    def close(self) -> None:
        self._left_claim.close()

    async def finish(self, reports: Sequence[Finished]) -> list[str]:
        return await self._calls.transact(finish.finish, reports, self._worker)

    async def finish_and_claim(
        self, reports: Sequence[Finished], slots: int, marks: Sequence[Mark] | None, room: Room
    ) -> FinishedAndClaimed:
        fewer = await self._left_claim.withdraw()
        slots, permitted = max(0, slots - fewer), self._permitted(marks)
        done = await self._calls.transact(
            claim.finish_and_claim, reports, self._worker, self._served, slots, permitted, room
        )
        self._learn(done.claimed)
        return replace(done, claimed=_with_more(done.claimed, slots)) if fewer else done

    def _learn(self, claimed: Claimed) -> None:
        for lane in claimed.lanes or ():
            self._marks.setdefault(lane, (claim.FIRST_RANK, FIRST_ID))
        self._marks |= {lane: (rank, id) for lane, rank, id in claimed.marks}

    def _permitted(self, marks: Sequence[Mark] | None) -> list[Mark] | None:
        """Leaves out lanes that no claim has found for this worker: a job can forge the calls of its process."""
        return None if marks is None else [mark for mark in marks if mark[0] in self._marks]

    async def write_notes(self, pieces: Sequence[Piece], states: Sequence[State]) -> list[str]:
        return await self._calls.transact(notes.write, pieces, states, self._worker)

    async def drain(self) -> None:
        await self._left_claim.withdraw()
        await self._calls.transact(fleet.drain, self._worker)

    async def tell_trouble(self, reasons: dict[str, str]) -> None:
        await self._calls.transact(fleet.tell_trouble, self._worker, reasons)

    async def reconcile(self, named: Sequence[str], in_doubt: Attempts) -> Attempts:
        return await self._calls.transact(fleet.reconcile, self._worker, named, in_doubt)

    async def has_ready(self) -> bool:
        return await self._calls.read(reader.has_ready, self._served)

    async def cancels(self) -> list[str]:
        return await self._calls.read(reader.cancels, self._worker)

    async def holds_more(self, named: Sequence[str]) -> bool:
        await self._left_claim.settled()  # Its executions would look like those of a lost reply.
        return await self._calls.read(reader.holds_more, self._worker, named)


def _with_more(claimed: Claimed, slots: int) -> Claimed:
    """For a child that has asked for more than these slots: its claim would not look full, although it is."""
    return replace(claimed, has_more=claimed.has_more or len(claimed.claims) == slots)


class SupervisorCalls:
    """The verbs of a supervisor as operations on a database, without hints. Implements `engine.port.SupervisorStore`.

    The simulation uses it as it is. Over HTTP that protocol needs another class, because `Calls` takes functions.
    """

    housekeeping: Sequence[Loop] = ()

    def __init__(self, calls: Calls, clock: Clock, max_payload_bytes: int = payload.MOST_BYTES) -> None:
        self.calls = calls
        self._ids = IdSource(clock)
        self._max_payload_bytes = max_payload_bytes

    def for_worker(self, worker: int, served: Served) -> WorkerCalls:
        return WorkerCalls(self.calls, worker, served)

    async def join(self, newcomer: Newcomer, lease_s: float) -> Joined:
        return Joined(*await self.calls.timed(fleet.join, newcomer, lease_s))

    async def beat(self, workers: Sequence[int], lease_s: float, memory: Mapping[int, int]) -> Beaten:
        return Beaten(*await self.calls.timed(fleet.beat, workers, lease_s, memory))

    async def leave(self, worker: int, reason: Reason = Reason.DRAINED) -> None:
        await self.calls.transact(fleet.leave, worker, reason)

    async def declare_dead(self, worker: int, cause: str) -> Death:
        return await self.calls.transact(fleet.declare_dead, worker, cause)

    async def tell_standstill(self, worker: int, why: str) -> None:
        await self.calls.transact(fleet.tell_standstill, worker, why)

    async def needs_of_ready(self, served: Served) -> list[str]:
        return await self.calls.read(load_reader.needs_of_ready, served)

    async def look(
        self, lease_s: float, served: Served | None, shards: Sequence[tuple[int, int]], ours: Sequence[int]
    ) -> Chores:
        return await self.calls.read(upkeep.look, lease_s, served, shards, ours)

    async def promote(self) -> int:
        return await self.calls.transact(upkeep.promote)

    async def expire(self) -> int:
        return await self.calls.transact(upkeep.expire)

    async def fire(self, shards: Sequence[tuple[int, int]]) -> int:
        return (await self.calls.transact(firing.fire, shards, self._ids.many)).schedules

    async def release_lifted(self) -> int:
        return await self.calls.transact(blockers.release_lifted)

    async def work_on_runs(self) -> int:
        return await self.calls.transact(chores.work_on_runs)

    async def sources(self, namespace: str, app: str, known: int | None) -> tuple[int, list[Source]] | None:
        return await self.calls.read(deploy.sources, namespace, app, known)

    async def emit_files(self, namespace: str, emissions: Sequence[Emission]) -> None:
        header = emit.EmitHeader(namespace, "folder", key_kind=KEPT_KIND)
        await self.calls.transact(emit.emit, header, list(emissions))

    async def emit_rows(self, namespace: str, table: str, most: int, skipped: Skipped) -> EmittedRows:
        limits = (most, self._max_payload_bytes)
        return await self.calls.transact(outbox.emit_rows, namespace, table, self._ids, *limits, skipped)

    async def work_on_events(self) -> int:
        return await self.calls.transact(work_on_events)

    async def work_on_actions(self) -> int:
        return await self.calls.transact(work_on_actions)

    async def wake_forgotten(self) -> int:
        return await self.calls.transact(after_end.wake_forgotten)

    async def keep_statistics(self) -> bool:
        due = await self.calls.read(statistics.due)
        if due.is_sample_due:
            await self.calls.transact(statistics.write_samples, await self.calls.read(statistics.observe))
        return due.has_deltas and await self.calls.transact(statistics.fold) == statistics.MOST_DELTAS

    async def rescue(self, lease_s: float, now: int, ours: Sequence[int]) -> Death:
        return await self.calls.transact(upkeep.rescue, lease_s, now, ours)

    async def look_at_deploys(self, namespace: str, app: str, lease_s: float, ours: Sequence[int]) -> deploy.Look:
        return await self.calls.read(deploy.look, namespace, app, lease_s, ours)

    async def settle_deploy(self, namespace: str, app: str, lease_s: float) -> None:
        await self.calls.transact(deploy.settle, namespace, app, lease_s)

    async def commits(self) -> int | None:
        return None

    async def blocker(self) -> int | None:
        return None

    def trouble(self) -> str | None:
        return None

    def listen(self, hear: Callable[[list[Hint]], None]) -> Callable[[], None]:
        return lambda: None

    def close(self) -> None:
        """There is nothing to release."""


class AsyncStore(SupervisorCalls):
    """The verbs of a supervisor over a store of this process, with its hints and the care of its history."""

    calls: StoreCalls

    def __init__(
        self,
        store: Store,
        clock: Clock,
        keeper: Keeper | None = None,
        retention_days: int = 30,
        max_payload_bytes: int = payload.MOST_BYTES,
    ) -> None:
        """`keeper` looks after the partitions of the database, if it has any."""
        super().__init__(StoreCalls(store), clock, max_payload_bytes)
        self._store = store
        self._janitor = Janitor(store, clock, keeper, retention_days)
        self.housekeeping = (self._janitor.loop,)

    async def commits(self) -> int | None:
        return await asyncio.to_thread(self._store.commits)

    async def blocker(self) -> int | None:
        return await asyncio.to_thread(self._store.blocker)

    def trouble(self) -> str | None:
        return self._store.trouble()

    def listen(self, hear: Callable[[list[Hint]], None]) -> Callable[[], None]:
        loop, listener = asyncio.get_running_loop(), self._store.bus.listen(Due, Ready, CancelAsked)
        loop.add_reader(listener.fileno(), lambda: hear(listener.take()))

        def stop() -> None:
            loop.remove_reader(listener.fileno())
            listener.close()

        return stop

    def close(self) -> None:
        self._janitor.close()
        self.calls.close()
        self._store.close()
