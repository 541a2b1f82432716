"""`rota worker`: a process that runs no user code, keeps the leases of its children alive, and replaces them.

    supervisor                                  child (one per seat)
      spawn ───────────────────────────────────▶ imports the app
      ◀─────────────────── hello(app, database) ─
      join the fleet: a worker row with a lease
      ── assignment(worker, …) ────────────────▶ claims, runs, reports
      beats for all children in one statement
      ◀──────────────────────────────── leaving ─ (only if it must be replaced; the next one starts at once)
      notices the end of a child at once, and gives its executions back

A child that ends without announcing it is declared dead in the store at once, without waiting for its lease. If the
supervisor cannot prove that a lease still holds, it kills the child before another worker may take its executions.
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
from rota.engine import report_worker_end, tether
from rota.engine.crew import Crew
from rota.engine.heart import STUCK, Heart
from rota.engine.host import STILL_OPEN_S, Child, Ending, Hello, Host
from rota.engine.loop import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, Loop
from rota.engine.port import SupervisorStore, WorkerPort, WorkerStore
from rota.engine.report_worker_end import LAST_WORD_S
from rota.engine.rollout import Rollout
from rota.engine.sources import Sources
from rota.engine.standstill import IdleWriter, ProcessState, Standstill
from rota.engine.statistics import StatisticsUpkeep
from rota.engine.tether import DRAIN, FINISH
from rota.engine.upkeep import Upkeep
from rota.engine.wire import Saw
from rota.engine.worker_settings import WorkerSettings
from rota.executors.process.exit_process import HANDLERS_S
from rota.store.hints import CancelAsked, Due, Hint, Ready

log = logging.getLogger("rota.engine")
T = TypeVar("T")

QUICK_DEATH_S = 5.0
LONGEST_PAUSE_S = 10.0
HEAD_START_S = 0.01


class Unusable(Exception):
    """The app could not be loaded; the text says why."""


class Supervisor:
    """Keeps as many children at work as `settings.processes` allows and the load asks for, until it is stopped."""

    def __init__(
        self, settings: WorkerSettings, clock: Clock, host: Host, connect: Callable[[str], Awaitable[SupervisorStore]]
    ) -> None:
        """`connect` opens the store at the URL that the first child names."""
        self._settings = settings
        self._clock = clock
        self._host = host
        self._connect = connect
        self._children: dict[int, Child] = {}
        self._unfinished: set[asyncio.Task[Any]] = set()
        self._unreported: set[int] = set()
        """Workers whose end we have yet to report."""
        self._causes: dict[int, str | None] = {}
        """Why we killed a worker. None if its lease was lost: then no crash is counted for its executions."""
        self._retired: set[int] = set()
        """Workers that were let go, or that an operator has asked to drain: they are not replaced."""
        self._idle_writer = IdleWriter(settings.lease_s * STUCK)
        self._crew = Crew(
            settings.processes,
            settings.concurrency,
            settings.quiet_s,
            clock,
            fill=self._run_seat,
            has_work=self._has_work,
            let_go=self._let_one_go,
        )
        self._stopping = asyncio.Event()
        self._store: SupervisorStore | None = None
        self._opening = asyncio.Lock()
        self._opened = asyncio.Event()
        self._turn = 0
        """Counts the calls of `_hear`, so that idle children take turns at being the first."""

    def stop(self) -> None:
        """The first call drains; the second one does not wait for running attempts."""
        if self._stopping.is_set():
            log.warning("stopping now: running executions return to their queues")
        else:
            log.warning("stopping: waiting up to %g s for running executions", self._settings.grace_s)
        self._stopping.set()
        self._crew.close()
        for child in self._children.values():
            child.send(DRAIN)

    async def run(self) -> bool:
        """Returns True after an orderly stop, and False once all workers were drained; raises Unusable if the app
        cannot be loaded.
        """
        self._host.on_signal(self.stop)
        seats = asyncio.create_task(self._all_seats(), name="seats")
        loops = asyncio.create_task(self._run_loops(), name="loops")
        try:
            done, _ = await asyncio.wait([seats, loops], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self._end_at_once(self._children.values())
            ending_tasks: list[asyncio.Task[Any]] = [seats, loops, *self._crew.seats, *self._unfinished]
            for task in ending_tasks:
                task.cancel()
            await asyncio.gather(*ending_tasks, return_exceptions=True)
            await self._host.close()
            if self._store is not None:
                self._store.close()
        return self._stopping.is_set()

    async def _all_seats(self) -> None:
        await self._crew.run()
        while self._unfinished:  # The end of a child leaves a report to be written.
            await asyncio.gather(*self._unfinished)

    async def _run_loops(self) -> None:
        """Heartbeats, upkeep and watchers, once the first child has said which database to use."""
        await self._opened.wait()
        store, lease_s = self._opened_store, self._settings.lease_s
        standstill = Standstill(self._clock, lease_s, self._states, self._report_standstill, self._kill_at_standstill)
        watches = (self._heart.watch, standstill.loop, Loop("store watch", self._look_at_store))
        stop_listening = store.listen(self._hear)
        try:
            ours = (self._heart.loop, self._upkeep.loop, self._rollout.loop, self._sources.loop)
            loops = (*ours, *watches, StatisticsUpkeep(store, self._clock).loop, *store.housekeeping)
            await asyncio.gather(*(one.run() for one in loops))
        finally:
            stop_listening()
            self._sources.close()

    async def _open(self, hello: Hello) -> bool:
        """Opens the store at the URL that the first child names. If it is away, waits for it: False after `stop`."""
        async with self._opening:
            while self._store is None:
                if self._stopping.is_set():
                    return False
                try:
                    self._begin(await self._connect(hello.url), hello)
                except StoreUnavailable as error:
                    if not error.may_pass:
                        raise
                    await self._pause(LONGEST_BACKOFF_S)
        # A later child may have imported newer code, with other jobs.
        self._upkeep.served = self._settings.served(hello)
        return True

    def _begin(self, store: SupervisorStore, hello: Hello) -> None:
        lease_s, poll_s = self._settings.lease_s, self._settings.poll_s
        self._store = store
        self._heart = Heart(
            store,
            self._clock,
            lease_s,
            lost=self._lost,
            waiting=self._unblock,
            drain=self._retire,
            renewed=self._renewed,
            failing=self._tell_trouble,
            memory=self._memory,
        )
        self._sources = Sources(store, self._clock, hello.namespace, hello.app)
        self._rollout = Rollout(store, hello.namespace, hello.app, lease_s, self._ours)
        self._upkeep = Upkeep(
            store,
            self._clock,
            lease_s,
            poll_s,
            served=self._settings.served(hello),
            found=self._tell_ready,
            ours=self._ours,
            steady_s=self._heart.steady_s,
        )
        self._opened.set()

    @property
    def _opened_store(self) -> SupervisorStore:
        assert self._store is not None, "the first child says where the store is"
        return self._store

    def _hear(self, news: list[Hint]) -> None:
        """Tells the children of hints: one idle child at once, and the other idle ones `HEAD_START_S` later, because
        one new row needs one child. For an idle child, `tell` makes the claim that it has left instead.

        A busy child gets the hints at once, too: it probably claims next, and they move its mark back to before the new
        row. If a cancel is among the hints, all children get them at once.
        """
        for hint in news:
            if isinstance(hint, Due):
                self._upkeep.hear(hint)
        hints = [hint for hint in news if not isinstance(hint, Due)]
        if not hints or not self._children:
            return
        children = list(self._children.values())
        idle = [child for child in children if not child.is_busy]
        self._turn += 1
        first = idle[self._turn % len(idle)] if idle else None
        has_cancel = any(isinstance(hint, CancelAsked) for hint in hints)
        for child in children:
            if has_cancel or child.is_busy or child is first:
                child.tell(hints)
            else:
                asyncio.get_running_loop().call_later(HEAD_START_S, child.tell, hints)

    def _tell_ready(self, lanes: dict[int, int]) -> None:
        """Sent even if no lane has work: a child does not look itself while its supervisor does."""
        for child in self._children.values():
            child.tell([Ready(lanes, is_look=True)])

    async def _look_at_store(self) -> float:
        """Stops the worker if its database file was deleted: writes would go to a file that no process can open."""
        if trouble := self._opened_store.trouble():
            raise Unusable(trouble)
        return self._settings.lease_s / 2

    async def _run_seat(self) -> None:
        """Runs one child after the other. Backs off while they die quickly."""
        pause_s = FIRST_BACKOFF_S
        while not self._stopping.is_set():
            started_at = self._clock.monotonic()
            ending, worker = await self._run_child()
            if worker in self._retired:
                self._crew.gone()
                return
            lived_s = self._clock.monotonic() - started_at
            if ending.is_in_order or lived_s > QUICK_DEATH_S:
                pause_s = FIRST_BACKOFF_S
            else:
                await self._pause(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    async def _run_child(self) -> tuple[Ending, int | None]:
        """Returns when the seat needs a new child: this one has ended, or must be replaced. Also returns its worker."""
        try:
            child = await self._host.start(self._settings.command)
        except OSError as error:
            log.error("cannot start a worker process, trying again: %s", error)
            return Ending(tether.UNUSABLE, True), None
        try:
            hello = await self._hello(child)
            if hello is None or hello.error:
                return await self._cannot_start(child, "" if hello is None else hello.error), None
            worker = await self._join(child, hello)
            if worker is None:
                await self._end_at_once([child])
                child.close()
                return Ending(tether.DRAINED, True), None
        except BaseException:
            await self._end_at_once([child])
            raise
        self._children[worker] = child
        self._unreported.add(worker)
        saw = self._crew.enter(worker)
        child.send(msgspec.json.encode(self._settings.assignment(worker)))
        self._heart.tell(worker)
        self._rollout.loop.wake.wake()
        if self._stopping.is_set():
            child.send(DRAIN)
        leaving = asyncio.create_task(child.leaving())
        port = self._opened_store.for_worker(worker, self._settings.served(hello))
        life = self._start(self._watch_child(worker, child, port, leaving, saw))
        await asyncio.wait([life, leaving], return_when=asyncio.FIRST_COMPLETED)
        self._crew.leave(worker)
        return (life.result() if life.done() else Ending(tether.RECYCLE, True)), worker

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Starts a task that must end before the supervisor may."""
        task = asyncio.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
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
        """Kills children and waits until they are gone: asyncio complains if its loop is closed before."""
        dying = list(children)
        for child in dying:
            child.kill()
        await asyncio.shield(asyncio.gather(*(child.wait() for child in dying)))

    async def _cannot_start(self, child: Child, error: str) -> Ending:
        """The first child that cannot start shows a mistake in the app, unless it was killed. Others may recover."""
        ending = Ending(await child.wait(), True)
        child.close()
        why = error or f"the worker process {ending} while it imported the app"
        if self._store is None and not self._stopping.is_set() and (error or ending.code > 0):
            raise Unusable(why)
        if error or not self._stopping.is_set():  # A child that still imports the app is killed by a stop.
            log.error("a new worker process cannot start: %s", why)
        return ending

    async def _watch_child(
        self, worker: int, child: Child, port: WorkerPort, leaving: asyncio.Task[None], saw: Saw
    ) -> Ending:
        """Serves the child until it has ended. Kills one that does not end within its grace."""
        end = asyncio.create_task(child.wait())
        serving = asyncio.create_task(child.serve_store(port, saw))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([end, stop, leaving], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([end], timeout=self._settings.grace_s + LAST_WORD_S + 2 * HANDLERS_S)
        finally:
            child.kill()  # The child if it still runs, and the programs that its jobs have started.
            leaving.cancel()
            stop.cancel()
        code = await end
        await asyncio.wait([leaving])  # It reads from the socket that `ended` reads from.
        ending = await child.ended(code)
        if ending.has_lost_lease or self._heart.is_over(worker):
            # The child itself, the spawner or the lease watch has ended it, and not a job.
            self._causes[worker] = None
        # The next child does not wait for this: if the store is away, it should be ready when the store is back.
        self._start(self._report_end(worker, child, port, serving, ending))
        return ending

    async def _report_end(
        self, worker: int, child: Child, port: WorkerStore, serving: asyncio.Task[None], ending: Ending
    ) -> None:
        """Carries out the last calls of a child, and then reports its end to the store."""
        # The last calls come first: a claim that is carried out after the report would keep its executions until the
        # lease ends. The stream ends with the child, unless a process that it forked keeps it open; after the timeout
        # everything that the child sent has arrived.
        await asyncio.wait([serving], timeout=STILL_OPEN_S)
        serving.cancel()
        await asyncio.wait([serving], timeout=LAST_WORD_S)
        child.close()
        del self._children[worker]
        self._heart.remove(worker)
        store, cause = self._opened_store, self._causes.pop(worker, f"the worker process {ending}")
        if ending.is_in_order:
            await report_worker_end.report_leave(store, worker, port, child.blocked)
        else:
            await report_worker_end.report_death(store, worker, cause, self._stopping)
        self._unreported.discard(worker)

    def _ours(self) -> list[int]:
        return list(self._unreported)

    async def _join(self, child: Child, hello: Hello) -> int | None:
        """The number of the new worker; None if the supervisor stops before the store has given one."""
        if not await self._open(hello):
            return None
        newcomer = self._settings.newcomer(hello, child.pid, self._host)
        backoff_s = FIRST_BACKOFF_S
        while not self._stopping.is_set():
            sent_at = self._clock.monotonic()
            try:
                worker, waited_s = await self._opened_store.join(newcomer, self._settings.lease_s)
            except StoreError as error:
                if backoff_s == FIRST_BACKOFF_S:
                    log.warning("cannot join yet, trying again: %s", error)
                await self._pause(backoff_s)
                backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
            else:
                self._heart.add(worker, sent_at + waited_s)
                return worker
        return None

    def _lost(self, worker: int, why: str) -> None:
        log.error(
            "worker %d has lost its lease (%s): killing it. Its executions return to their queues; no attempt or crash "
            "is counted",
            worker,
            why,
        )
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

    def _memory(self) -> dict[int, int]:
        return {worker: state.memory for worker, state in self._states().items() if state.memory}

    async def _report_standstill(self, worker: int, why: str) -> None:
        if why:
            log.warning("worker %d stands still: %s. It is killed after %g s", worker, why, self._settings.lease_s)
        await self._opened_store.tell_standstill(worker, why)

    def _kill_at_standstill(self, worker: int, why: str) -> None:
        cause = f"the worker process stood still for longer than its lease ({why}), and was killed"
        self._causes.setdefault(worker, cause)
        self._children[worker].kill()

    def _retire(self, worker: int) -> None:
        if worker in self._children and worker not in self._retired:
            log.warning("worker %d was asked to drain: waiting up to %g s for it", worker, self._settings.grace_s)
            self._retired.add(worker)
            self._crew.dismiss(worker)
            self._children[worker].send(DRAIN)

    def _let_one_go(self, worker: int) -> None:
        self._retired.add(worker)
        self._children[worker].send(FINISH)

    async def _has_work(self) -> bool:
        """Whether there are ready executions that an idle child of ours could take."""
        needs = await self._opened_store.needs_of_ready(self._upkeep.served)
        return any(requirement.fits(one, requirement.encode(self._settings.offers)) for one in needs)

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
