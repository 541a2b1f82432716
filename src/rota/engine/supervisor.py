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
import signal
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import msgspec

from rota.clock import Clock
from rota.domain import requirement
from rota.domain.errors import StoreError, StoreUnavailable
from rota.domain.status import Reason
from rota.engine import tether
from rota.engine.bridge import Bridge, StoreBridge
from rota.engine.child import DRAIN, FINISH, Hello
from rota.engine.crew import Crew
from rota.engine.deadman import Deadman
from rota.engine.heart import MARGIN, Heart, farewell
from rota.engine.janitor import Janitor
from rota.engine.loop import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, Loop
from rota.engine.plan import Plan
from rota.engine.process import ChildProcess, ending
from rota.engine.strays import Strays, end_strays
from rota.engine.upkeep import Upkeep
from rota.ops import finish, fleet
from rota.ops.upkeep import Served
from rota.store import load
from rota.store.hints import CancelAsked, Due, Hint, Ready
from rota.store.keeping import open_keeper
from rota.store.port import Store

log = logging.getLogger("rota.engine")

QUICK_DEATH_S = 5.0
LONGEST_PAUSE_S = 10.0
LAST_WORD_S = 10.0
STILL_OPEN_S = 0.5
HEAD_START_S = 0.01


class Unusable(Exception):
    """The app could not be loaded; the text says why."""


class Supervisor:
    """Keeps as many children at work as `plan.processes` allows and the load asks for, until told to stop."""

    def __init__(self, plan: Plan, clock: Clock, open_store: Callable[[str], Store]) -> None:
        self._plan = plan
        self._clock = clock
        self._open_store = open_store
        self._children: dict[int, ChildProcess] = {}
        self._lives: set[asyncio.Task[int]] = set()
        self._ours: set[int] = set()
        """Workers whose end is ours to report."""
        self._let_go: set[int] = set()
        """Workers that we ended ourselves, by no fault of what they ran."""
        self._retired: set[int] = set()
        """Workers that were let go, or that somebody has asked to drain: nobody takes their place."""
        self._crew = Crew(
            plan.processes,
            plan.concurrency,
            plan.quiet_s,
            clock,
            fill=self._keep_slot,
            waits=self._has_work,
            let_go=self._let_one_go,
        )
        self._strays = Strays()
        self._deadman = Deadman(plan.lease_s * MARGIN / 2)
        self._stopping = asyncio.Event()
        self._store: Store | None = None
        self._url = ""
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
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # As under nohup, which is meant.
                loop.add_signal_handler(number, self.stop)
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
            self._deadman.close()
            await end_strays()
            if self._store is not None:
                self._store.close()

    async def _all_slots(self) -> None:
        await self._crew.run()
        while self._lives:  # The end of a life leaves a burial.
            await asyncio.gather(*self._lives)

    async def _chores(self) -> None:
        """Heartbeats and upkeep, once the first child has said which database to use."""
        await self._opened.wait()
        assert self._store is not None
        loop = asyncio.get_running_loop()
        bridge = StoreBridge(self._store)
        lease_s, poll_s = self._plan.lease_s, self._plan.poll_s
        upkeep = Upkeep(bridge, self._clock, lease_s, poll_s, self._served, self._tell_ready, lambda: [*self._ours])
        janitor = Janitor(bridge, self._clock, open_keeper(self._url, self._clock), self._plan.retention_days)
        listener = self._store.bus.listen(Due, Ready, CancelAsked)

        def hear() -> None:
            news = listener.take()
            for hint in news:
                if isinstance(hint, Due):
                    upkeep.hear(hint)
            self._pass_on([hint for hint in news if not isinstance(hint, Due)])

        loop.add_reader(listener.fileno(), hear)
        self._bridge = bridge
        calls = (self._lost, self._unblock, self._retire, self._renewed)
        self._heart = Heart(bridge, self._clock, self._plan.lease_s, *calls)
        self._usable.set()
        try:
            watch = Loop("store watch", self._look_at_store)
            loops = (self._heart.loop, self._heart.watch, upkeep.loop, watch, janitor.loop, self._strays.loop)
            await asyncio.gather(*(one.run() for one in loops))
        finally:
            janitor.close()
            loop.remove_reader(listener.fileno())
            listener.close()
            bridge.close()

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
        trouble = self._store.trouble() if self._store is not None else None
        if trouble:
            raise Unusable(trouble)
        return self._plan.lease_s / 2

    async def _keep_slot(self) -> None:
        """A child, and after it the next; after quick deaths, with growing pauses."""
        pause_s = FIRST_BACKOFF_S
        while not self._stopping.is_set():
            started_at = self._clock.monotonic()
            code, worker = await self._one_life()
            if worker in self._retired:
                self._crew.gone()
                return
            lived_s = self._clock.monotonic() - started_at
            if code in (tether.DRAINED, tether.RECYCLE, tether.BLOCKED) or lived_s > QUICK_DEATH_S:
                pause_s = FIRST_BACKOFF_S
            else:
                await self._pause(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    async def _one_life(self) -> tuple[int, int | None]:
        """Returns when the slot needs a new child: this one has ended, or is on its way out. Says which it was."""
        try:
            child = await ChildProcess.spawn(self._plan.command)
        except OSError as error:
            return self._unborn(error), None
        self._deadman.start()
        try:
            hello = await self._hello(child)
            if hello is None:
                return await self._stillborn(child), None
            if hello.error:
                return await self._refused(child, hello.error), None
            worker = await self._join(child, hello)
            if worker is None:
                await self._end_at_once([child])
                return tether.DRAINED, None
        except BaseException:
            await self._end_at_once([child])
            raise
        self._children[worker] = child
        self._ours.add(worker)
        bridge = self._crew.enter(worker, self._bridge)
        child.send(msgspec.json.encode(self._plan.place(worker, hello.namespace, hello.app)))
        self._heart.tell(worker)
        if self._stopping.is_set():
            child.send(DRAIN)
        leaving = asyncio.create_task(child.leaving())
        life = self._keep(self._live_out(worker, child, leaving, bridge))
        await asyncio.wait([life, leaving], return_when=asyncio.FIRST_COMPLETED)
        self._crew.leave(worker)
        return (life.result() if life.done() else tether.RECYCLE), worker

    def _keep(self, work: Coroutine[Any, Any, int]) -> asyncio.Task[int]:
        """Something that must come to its end before the supervisor may."""
        task = asyncio.create_task(work)
        self._lives.add(task)
        task.add_done_callback(self._lives.discard)
        return task

    async def _hello(self, child: ChildProcess) -> Hello | None:
        """None if the child died, or if we are stopping: a child that still imports the app holds nothing."""
        hello = asyncio.create_task(child.hello())
        stop = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([hello, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not hello.done():
            child.kill()
        return await hello

    async def _end_at_once(self, children: Iterable[ChildProcess]) -> None:
        """Kills, and waits until they are gone: a loop that closes before that complains about them."""
        dying = list(children)
        for child in dying:
            child.kill()
        await asyncio.shield(asyncio.gather(*(child.wait() for child in dying)))

    def _unborn(self, error: OSError) -> int:
        """The machine has no process or no descriptor for us now; the other children go on meanwhile."""
        log.error("cannot start a worker process, trying again: %s", error)
        return tether.UNUSABLE

    async def _stillborn(self, child: ChildProcess) -> int:
        """The child ended while it imported the app. An exit code at the very first start is the app's own doing."""
        code = await child.wait()
        child.close()
        if not self._stopping.is_set():
            text = f"the worker process {ending(code)} while it imported the app"
            if code > 0 and self._store is None:
                raise Unusable(text)
            log.error("%s; trying again", text)
        return code

    async def _refused(self, child: ChildProcess, error: str) -> int:
        """The first child tells a mistake; a later one, after others have worked, tells a trouble that may pass."""
        if self._store is None:
            raise Unusable(error)
        log.error("a new worker process cannot start: %s", error)
        return await child.wait()

    async def _live_out(self, worker: int, child: ChildProcess, leaving: asyncio.Task[None], bridge: Bridge) -> int:
        """Until the child has ended; the store is told apart from that. A child that outstays its grace is killed."""
        end = asyncio.create_task(child.wait())
        desk = asyncio.create_task(child.serve_store(bridge))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([end, stop, leaving], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([end], timeout=self._plan.grace_s + LAST_WORD_S)
        finally:
            child.kill()  # Whatever is left of it, and what it started.
            leaving.cancel()
            stop.cancel()
        code = await end
        if code < 0:
            self._strays.look_soon()
        # The next child need not wait for this: if the store is away, it should be ready when the store is back.
        self._keep(self._bury(worker, child, desk, code))
        return code

    async def _bury(self, worker: int, child: ChildProcess, desk: asyncio.Task[None], code: int) -> int:
        """Lets the last words of a child come to their end, and tells the store that it is gone."""
        # First what the child asked for, then its end: a claim that came after would be lost until the lease ends. The
        # stream ends with the child, unless something that it forked holds it open: then what it sent is here already.
        await asyncio.wait([desk], timeout=STILL_OPEN_S)
        desk.cancel()
        await asyncio.wait([desk], timeout=LAST_WORD_S)
        child.close()
        del self._children[worker]
        self._heart.remove(worker)
        if code == tether.BLOCKED:
            await self._report_blocked(child)
        if code in (tether.DRAINED, tether.RECYCLE, tether.BLOCKED):
            await farewell(self._bridge, worker)
        else:
            await self._report_death(worker, code)
        self._ours.discard(worker)
        return code

    async def _join(self, child: ChildProcess, hello: Hello) -> int | None:
        """Its number; None if we are to stop before the store has one for it."""
        if not await self._open(hello):
            return None
        newcomer = self._plan.newcomer(hello.namespace, hello.app, child.pid)
        backoff_s = FIRST_BACKOFF_S
        while not self._stopping.is_set():
            joined_at = self._clock.monotonic()
            try:
                worker = await self._bridge.transact(fleet.join, newcomer, self._plan.lease_s)
            except StoreError as error:
                if backoff_s == FIRST_BACKOFF_S:
                    log.warning("cannot join yet: %s", error)
                await self._pause(backoff_s)
                backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
            else:
                self._heart.add(worker, joined_at)
                return worker
        return None

    async def _open(self, hello: Hello) -> bool:
        """The first child says where the store is. If that is away, a worker has nothing better to do than to wait."""
        async with self._opening:
            while self._store is None:
                if self._stopping.is_set():
                    return False
                try:
                    self._store = await asyncio.to_thread(self._open_store, hello.url)
                except StoreUnavailable as error:
                    if not error.may_pass:
                        raise
            self._url = hello.url
            queues = None if self._plan.queues is None else list(self._plan.queues)
            self._served = Served(hello.namespace, hello.app, queues)
            self._opened.set()
        await self._usable.wait()
        return True

    async def _report_blocked(self, child: ChildProcess) -> None:
        """One attempt held the event loop beyond its time: that has ended so; the rest was not its fault."""
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(LAST_WORD_S):
                report = await child.blocked()
                if report is not None:
                    log.error(
                        "execution %s held its worker process beyond its time; the process is replaced", report.id
                    )
                    await self._bridge.transact(finish.finish, [report])

    async def _report_death(self, worker: int, code: int) -> None:
        """Until the store knows: if the lease had to tell it, what the child held would be charged with a crash."""
        is_ours = worker in self._let_go
        self._let_go.discard(worker)
        cause = (
            "the worker process lost its lease" if code == tether.LEASE_LOST else f"the worker process {ending(code)}"
        )
        if not is_ours:
            log.error("%s; what it held goes to others", cause)
        backoff_s = FIRST_BACKOFF_S
        while True:
            try:
                if is_ours:
                    await self._bridge.transact(fleet.leave, worker, Reason.LEASE_LOST)
                else:
                    await self._bridge.transact(fleet.declare_dead, worker, cause)
            except StoreError:
                if self._stopping.is_set():
                    return
                await self._pause(backoff_s)
                backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
            else:
                return

    def _lost(self, worker: int) -> None:
        log.error("worker %d may no longer hold its lease; ending it, what it held goes back", worker)
        if worker in self._children:
            self._let_go.add(worker)
            self._children[worker].kill()

    def _renewed(self, worker: int, until: float) -> None:
        if worker in self._children:
            self._children[worker].hold_until(until)
            self._deadman.hold(self._children[worker].pid, until)

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
        where = (self._served.namespace, self._served.app, self._served.queues)
        needs = await self._bridge.read(load.needs_of_ready, *where)
        return any(requirement.fits(one, requirement.encode(self._plan.offers)) for one in needs)

    def _unblock(self) -> None:
        """A child that holds the only turn to write and does not go on would cost everybody's lease: it must go.

        It was stopped, or user code holds its interpreter, in the middle of a write.
        """
        culprit = self._store.blocker() if self._store is not None else None
        for child in self._children.values():
            if child.pid == culprit:
                log.error("worker process %d keeps everybody from writing; killing it", child.pid)
                child.kill()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
