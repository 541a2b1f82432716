"""`rota worker`: a process that runs no user code, keeps the leases of its children alive, and replaces them.

    supervisor                                  child (one per slot)
      spawn ───────────────────────────────────▶ imports the app
      ◀─────────────────── hello(app, database) ─
      join the fleet: a worker row with a lease
      ── place(worker, …) ─────────────────────▶ claims, runs, reports
      beats for all children in one statement
      ◀──────────────────────────────── leaving ─ (only if it must be replaced; the next one starts at once)
      sees a child's end at once, and gives back what it held

A child that ends in any way but in order is declared dead in the store at once, without waiting for its lease. If the
supervisor cannot prove that a lease still holds, it kills the child before anybody else may take its work.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

import msgspec

from rota.clock import Clock
from rota.domain import requirement
from rota.domain.errors import StoreError, StoreUnavailable
from rota.domain.served import Served
from rota.engine import tether, worker_end
from rota.engine.crew import Crew
from rota.engine.heart import STUCK, Heart
from rota.engine.host import STILL_OPEN_S, Child, Ending, Hello, Host
from rota.engine.loop import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, Loop
from rota.engine.plan import Plan
from rota.engine.port import SupervisorStore
from rota.engine.rollout import Rollout
from rota.engine.standstill import IdleWriter, ProcessState, Standstill
from rota.engine.tether import DRAIN, FINISH
from rota.engine.upkeep import Upkeep
from rota.engine.wire import Saw
from rota.engine.worker_end import LAST_WORD_S
from rota.executors.process.exiting import HANDLERS_S
from rota.store.hints import CancelAsked, Due, Hint, Ready

log = logging.getLogger("rota.engine")
T = TypeVar("T")

QUICK_DEATH_S = 5.0
LONGEST_PAUSE_S = 10.0
HEAD_START_S = 0.01


class Unusable(Exception):
    """The app could not be loaded; the text says why."""


class Supervisor:
    """Keeps as many children at work as `plan.processes` allows and the load asks for, until told to stop."""

    def __init__(
        self, plan: Plan, clock: Clock, host: Host, connect: Callable[[str], Awaitable[SupervisorStore]]
    ) -> None:
        """`connect` opens the store at the URL that the first child names."""
        self._plan = plan
        self._clock = clock
        self._host = host
        self._connect = connect
        self._children: dict[int, Child] = {}
        self._lives: set[asyncio.Task[Any]] = set()
        self._ours: set[int] = set()
        """Workers whose end is ours to report."""
        self._causes: dict[int, str | None] = {}
        """Why we killed a worker. None if its lease was lost: then its executions are not charged with the crash."""
        self._retired: set[int] = set()
        """Workers that were let go, or that an operator has asked to drain: they are not replaced."""
        self._idle_writer = IdleWriter(plan.lease_s * STUCK)
        self._crew = Crew(
            plan.processes,
            plan.concurrency,
            plan.quiet_s,
            clock,
            fill=self._keep_slot,
            waits=self._has_work,
            let_go=self._let_one_go,
        )
        self._stopping = asyncio.Event()
        self._store: SupervisorStore | None = None
        self._served: Served | None = None
        self._turn = 0
        self._opening = asyncio.Lock()
        self._opened = asyncio.Event()
        self._usable = asyncio.Event()

    def stop(self) -> None:
        """First call: drain. Second: do not wait for what runs."""
        if self._stopping.is_set():
            log.warning("stopping now: what still runs goes back to the queue")
        else:
            log.warning("stopping: waiting up to %g s for what runs", self._plan.grace_s)
        self._stopping.set()
        self._crew.close()
        for child in self._children.values():
            child.send(DRAIN)

    async def run(self) -> None:
        """Returns after an orderly stop; raises Unusable if the app cannot be loaded."""
        self._host.on_signal(self.stop)
        slots = asyncio.create_task(self._all_slots(), name="slots")
        chores = asyncio.create_task(self._chores(), name="chores")
        try:
            done, _ = await asyncio.wait([slots, chores], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self._end_at_once(self._children.values())
            ending_tasks: list[asyncio.Task[Any]] = [slots, chores, *self._crew.places, *self._lives]
            for task in ending_tasks:
                task.cancel()
            await asyncio.gather(*ending_tasks, return_exceptions=True)
            await self._host.close()
            if self._store is not None:
                self._store.close()

    async def _all_slots(self) -> None:
        await self._crew.run()
        while self._lives:  # The end of a life leaves a burial.
            await asyncio.gather(*self._lives)

    async def _chores(self) -> None:
        """Heartbeats and upkeep, once the first child has said which database to use."""
        await self._opened.wait()
        assert self._served is not None
        store, lease_s, ours = self._opened_store, self._plan.lease_s, lambda: [*self._ours]
        self._heart = heart = Heart(
            store,
            self._clock,
            lease_s,
            lost=self._lost,
            waiting=self._unblock,
            drain=self._retire,
            renewed=self._renewed,
            failing=self._tell_trouble,
        )
        self._rollout = Rollout(store, self._served, lease_s, ours)
        upkeep = Upkeep(
            store,
            self._clock,
            lease_s,
            self._plan.poll_s,
            served=self._served,
            found=self._tell_ready,
            ours=ours,
            steady_s=heart.steady_s,
        )
        standstill = Standstill(self._clock, lease_s, self._states, self._report_standstill, self._kill_at_standstill)
        store_watch = Loop("store watch", self._look_at_store)

        def hear(news: list[Hint]) -> None:
            for hint in news:
                if isinstance(hint, Due):
                    upkeep.hear(hint)
            self._pass_on([hint for hint in news if not isinstance(hint, Due)])

        stop_listening = store.listen(hear)
        self._usable.set()
        try:
            own = (heart.loop, heart.watch, upkeep.loop, self._rollout.loop, standstill.loop, store_watch)
            await asyncio.gather(*(one.run() for one in (*own, *store.housekeeping)))
        finally:
            stop_listening()

    @property
    def _opened_store(self) -> SupervisorStore:
        assert self._store is not None, "the first child says where the store is"
        return self._store

    def _pass_on(self, hints: list[Hint]) -> None:
        """To one child at once, each in its turn, and to the others a moment later: a single arrival needs only one."""
        if not hints or not self._children:
            return
        children = list(self._children.values())
        self._turn = (self._turn + 1) % len(children)
        for child in children:
            if child is children[self._turn] or any(isinstance(hint, CancelAsked) for hint in hints):
                child.tell(hints)
            else:
                asyncio.get_running_loop().call_later(HEAD_START_S, child.tell, hints)

    def _tell_ready(self, lanes: dict[int, int]) -> None:
        """Also if there is nothing: a child that hears that somebody looks need not look itself."""
        for child in self._children.values():
            child.tell([Ready(lanes, is_look=True)])

    async def _look_at_store(self) -> float:
        """A database that was deleted goes on to take writes that nobody will ever read: better to stop."""
        if trouble := self._opened_store.trouble():
            raise Unusable(trouble)
        return self._plan.lease_s / 2

    async def _keep_slot(self) -> None:
        """A child, and after it the next; after quick deaths, with growing pauses."""
        pause_s = FIRST_BACKOFF_S
        while not self._stopping.is_set():
            started_at = self._clock.monotonic()
            ending, worker = await self._one_life()
            if worker in self._retired:
                self._crew.gone()
                return
            lived_s = self._clock.monotonic() - started_at
            if ending.is_in_order or lived_s > QUICK_DEATH_S:
                pause_s = FIRST_BACKOFF_S
            else:
                await self._pause(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    async def _one_life(self) -> tuple[Ending, int | None]:
        """Returns when the slot needs a new child: this one has ended, or is on its way out. Says which it was."""
        try:
            child = await self._host.start(self._plan.command)
        except OSError as error:
            return self._unborn(error), None
        try:
            hello = await self._hello(child)
            if hello is None:
                return await self._stillborn(child), None
            if hello.error:
                return await self._refused(child, hello.error), None
            worker = await self._join(child, hello)
            if worker is None:
                await self._end_at_once([child])
                return Ending(tether.DRAINED, True), None
        except BaseException:
            await self._end_at_once([child])
            raise
        self._children[worker] = child
        self._ours.add(worker)
        saw = self._crew.enter(worker)
        child.send(msgspec.json.encode(self._plan.place(worker, hello.namespace, hello.app)))
        self._heart.tell(worker)
        self._rollout.loop.wake.wake()
        if self._stopping.is_set():
            child.send(DRAIN)
        leaving = asyncio.create_task(child.leaving())
        life = self._keep(self._live_out(worker, child, leaving, saw))
        await asyncio.wait([life, leaving], return_when=asyncio.FIRST_COMPLETED)
        self._crew.leave(worker)
        return (life.result() if life.done() else Ending(tether.RECYCLE, True)), worker

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Something that must come to its end before the supervisor may."""
        task = asyncio.create_task(work)
        self._lives.add(task)
        task.add_done_callback(self._lives.discard)
        return task

    async def _hello(self, child: Child) -> Hello | None:
        """None if the child died, or if we are stopping: a child that still imports the app holds nothing."""
        hello = asyncio.create_task(child.hello())
        stop = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([hello, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not hello.done():
            child.kill()
        return await hello

    async def _end_at_once(self, children: Iterable[Child]) -> None:
        """Kills, and waits until they are gone: a loop that closes before that complains about them."""
        dying = list(children)
        for child in dying:
            child.kill()
        await asyncio.shield(asyncio.gather(*(child.wait() for child in dying)))

    def _unborn(self, error: OSError) -> Ending:
        """The machine has no process or no descriptor for us now; the other children go on meanwhile."""
        log.error("cannot start a worker process, trying again: %s", error)
        return Ending(tether.UNUSABLE, True)

    async def _stillborn(self, child: Child) -> Ending:
        """The child ended while it imported the app. An exit code at the very first start is the app's own doing."""
        ending = Ending(await child.wait(), True)
        child.close()
        if not self._stopping.is_set():
            text = f"the worker process {ending} while it imported the app"
            if ending.code > 0 and self._store is None:
                raise Unusable(text)
            log.error("%s; trying again", text)
        return ending

    async def _refused(self, child: Child, error: str) -> Ending:
        """The first child tells a mistake; a later one, after others have worked, tells a trouble that may pass."""
        if self._store is None:
            raise Unusable(error)
        log.error("a new worker process cannot start: %s", error)
        return Ending(await child.wait(), True)

    async def _live_out(self, worker: int, child: Child, leaving: asyncio.Task[None], saw: Saw) -> Ending:
        """Until the child has ended; the store is told apart from that. A child that outstays its grace is killed."""
        end = asyncio.create_task(child.wait())
        desk = asyncio.create_task(child.serve_store(self._opened_store.for_worker(worker), saw))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([end, stop, leaving], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([end], timeout=self._plan.grace_s + LAST_WORD_S + 2 * HANDLERS_S)
        finally:
            child.kill()  # Whatever is left of it, and what it started.
            leaving.cancel()
            stop.cancel()
        code = await end
        await asyncio.wait([leaving])  # It reads the same pipe.
        ending = await child.ended(code)
        if ending.has_lost_lease or self._heart.is_over(worker):
            # The child, the spawner or the lease watch has ended it: whichever was first, no job did.
            self._causes[worker] = None
        # The next child need not wait for this: if the store is away, it should be ready when the store is back.
        self._keep(self._bury(worker, child, desk, ending))
        return ending

    async def _bury(self, worker: int, child: Child, desk: asyncio.Task[None], ending: Ending) -> None:
        """Lets the last words of a child come to their end, and tells the store that it is gone."""
        # First what the child asked for, then its end: a claim that came after would be lost until the lease ends. The
        # stream ends with the child, unless something that it forked holds it open: then what it sent is here already.
        await asyncio.wait([desk], timeout=STILL_OPEN_S)
        desk.cancel()
        await asyncio.wait([desk], timeout=LAST_WORD_S)
        child.close()
        del self._children[worker]
        self._heart.remove(worker)
        store = self._opened_store
        if ending.is_in_order:
            await worker_end.report_blocked(store, worker, child.blocked)
            await worker_end.farewell(store, worker)
        else:
            cause = self._causes.pop(worker, f"the worker process {ending}")
            await worker_end.report_death(store, worker, cause, self._stopping)
        self._ours.discard(worker)

    async def _join(self, child: Child, hello: Hello) -> int | None:
        """Its number; None if we are to stop before the store has one for it."""
        if not await self._open(hello):
            return None
        newcomer = self._plan.newcomer(hello, child.pid, self._host)
        backoff_s = FIRST_BACKOFF_S
        while not self._stopping.is_set():
            sent_at = self._clock.monotonic()
            try:
                worker, waited_s = await self._opened_store.join(newcomer, self._plan.lease_s)
            except StoreError as error:
                if backoff_s == FIRST_BACKOFF_S:
                    log.warning("cannot join yet, trying again: %s", error)
                await self._pause(backoff_s)
                backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
            else:
                self._heart.add(worker, sent_at + waited_s)
                return worker
        return None

    async def _open(self, hello: Hello) -> bool:
        """The first child says where the store is. If that is away, a worker has nothing better to do than to wait."""
        async with self._opening:
            while self._store is None:
                if self._stopping.is_set():
                    return False
                try:
                    self._store = await self._connect(hello.url)
                except StoreUnavailable as error:
                    if not error.may_pass:
                        raise
                    await self._pause(LONGEST_BACKOFF_S)
            queues = None if self._plan.queues is None else list(self._plan.queues)
            self._served = Served.one(hello.namespace, hello.app, queues, hello.jobs)
            self._opened.set()
        await self._usable.wait()
        return True

    def _lost(self, worker: int, why: str) -> None:
        log.error("worker %d has lost its lease (%s): ending it, its executions go back uncharged", worker, why)
        if worker in self._children:
            self._causes[worker] = None
            self._children[worker].kill()

    def _renewed(self, worker: int, until: float) -> None:
        if worker in self._children:
            self._children[worker].hold_until(until)

    def _tell_trouble(self, why: str) -> None:
        """Sends the reason to the children: a child whose lease ends logs it."""
        for child in self._children.values():
            child.send(tether.TROUBLE + why.encode())

    def _states(self) -> dict[int, ProcessState]:
        return {worker: self._host.state(child.pid) for worker, child in self._children.items()}

    async def _report_standstill(self, worker: int, why: str) -> None:
        if why:
            log.warning("worker %d stands still: %s. It is killed after %g s", worker, why, self._plan.lease_s)
        await self._opened_store.tell_standstill(worker, why)

    def _kill_at_standstill(self, worker: int, why: str) -> None:
        cause = f"the worker process stood still for longer than its lease ({why}), and was killed"
        self._causes.setdefault(worker, cause)
        self._children[worker].kill()

    def _retire(self, worker: int) -> None:
        if worker in self._children and worker not in self._retired:
            log.warning("worker %d was asked to drain: waiting up to %g s for what runs", worker, self._plan.grace_s)
            self._retired.add(worker)
            self._crew.dismiss(worker)
            self._children[worker].send(DRAIN)

    def _let_one_go(self, worker: int) -> None:
        self._retired.add(worker)
        self._children[worker].send(FINISH)

    async def _has_work(self) -> bool:
        """Whether something waits that a child of ours could take, if it had nothing else to do."""
        assert self._served is not None
        needs = await self._opened_store.needs_of_ready(self._served)
        return any(requirement.fits(one, requirement.encode(self._plan.offers)) for one in needs)

    async def _unblock(self, waited_s: float) -> None:
        """Kills a child that holds the write lock of the database and does nothing with it."""
        holder = await self._opened_store.blocker()
        for child in self._children.values():
            if child.pid == holder and self._idle_writer.is_idle(child.pid, waited_s):
                log.error("worker process %d holds the write lock and does not write; killing it", child.pid)
                child.kill()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
