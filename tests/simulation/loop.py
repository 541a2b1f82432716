"""A deterministic event loop on virtual time, and processes that live on it.

Nothing waits: when no callback is ready, time jumps to the next timer. Every callback belongs to the process in whose
context it was scheduled, so a process can be stopped (its callbacks are kept until it is continued, like SIGSTOP) and
killed (they never run, like SIGKILL: no handler, no `finally`, nothing), although all share one thread.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

MOST_AT_ONE_INSTANT = 200_000
_OWNER: ContextVar[Process | None] = ContextVar("owner", default=None)
_Entry = tuple[asyncio.Handle, "Process | None"]


class Stuck(Exception):
    """The loop has nothing to do, or does not get on in time."""


class VirtualLoop(asyncio.BaseEventLoop):
    """`time()` is virtual; callbacks run in the order in which they were scheduled."""

    def __init__(self) -> None:
        super().__init__()
        self._time = 0.0
        self._soon: deque[_Entry] = deque()
        self._timers: list[tuple[float, int, asyncio.Handle, Process | None]] = []
        self._numbers = itertools.count()
        self._at_this_instant = 0
        self.errors: list[str] = []
        self.processes: list[Process] = []
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self._time

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, context)
        self._soon.append((handle, context.get(_OWNER)))
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle, context.get(_OWNER)))
        return handle

    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=str(name), context=context)
        owner = (context or copy_context()).get(_OWNER)
        if owner is not None:
            owner.tasks[task] = None
            task.add_done_callback(owner.forget, context=_NO_PROCESS)
        return task

    def outside(self, delay_s: float, callback: Callable[..., object], *args: Any) -> None:
        """Calls back later on behalf of no process: the network and the database do not stop with their callers."""
        self.call_later(delay_s, callback, *args, context=_NO_PROCESS.copy())

    def release(self, entries: list[_Entry]) -> None:
        self._soon.extend(entries)

    def _run_once(self) -> None:
        if not self._soon:
            self._jump()
        handle, owner = self._soon.popleft()
        self._at_this_instant += 1
        if self._at_this_instant > MOST_AT_ONE_INSTANT:
            raise Stuck(f"{MOST_AT_ONE_INSTANT:,} callbacks without time passing at {self._time:.3f} s: {handle}")
        if handle.cancelled():
            return
        if owner is not None and owner.is_halted:
            owner.held.append((handle, owner))
        else:
            handle._run()

    def _jump(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            raise Stuck("nothing is left that could ever happen")
        if self._timers[0][0] > self._time:
            self._time = self._timers[0][0]
            self._at_this_instant = 0
        while self._timers and self._timers[0][0] <= self._time:
            _, _, handle, owner = heapq.heappop(self._timers)
            self._soon.append((handle, owner))

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are skipped when their time comes."""

    def _process_events(self, event_list: object) -> None:
        """There are none: nothing comes from outside."""

    def _write_to_self(self) -> None:
        """No callback comes from another thread."""

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        message = str(context.get("message", ""))
        # A reply to a caller that has died is no error.
        if "Future exception was never retrieved" not in message:
            self.errors.append(f"{message}: {context.get('exception')!r}")


class Process:
    """A program: tasks that can be stopped, continued and killed without their consent."""

    def __init__(self, loop: VirtualLoop, name: str) -> None:
        self.name = name
        self.context = _NO_PROCESS.copy()
        self.context.run(_OWNER.set, self)
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.held: list[_Entry] = []
        self.is_halted = False
        self.died_at: float | None = None
        self._stops: list[tuple[float, float]] = []
        self._stopped_at: float | None = None
        self._loop = loop
        self._mourners: list[Callable[[], None]] = []
        loop.processes.append(self)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        return self._loop.create_task(work, name=f"{self.name} {name}", context=self.context.copy())

    def call(self, delay_s: float, callback: Callable[..., object], *args: Any) -> None:
        """Calls back inside this process: not while it is stopped, and never once it is dead."""
        self._loop.call_later(delay_s, callback, *args, context=self.context.copy())

    def mourn(self, callback: Callable[[], None]) -> None:
        """`callback` runs when the process has been killed."""
        self._mourners.append(callback)

    def stop(self) -> None:
        if self.died_at is None and self._stopped_at is None:
            self.is_halted = True
            self._stopped_at = self._loop.time()

    def go_on(self) -> None:
        if self.died_at is None and self._stopped_at is not None:
            self._stops.append((self._stopped_at, self._loop.time()))
            self._stopped_at = None
            self.is_halted = False
            held, self.held = self.held, []
            self._loop.release(held)

    def stops(self) -> list[tuple[float, float]]:
        """From when to when it stood still; the last may not be over."""
        now_stopped = [] if self._stopped_at is None else [(self._stopped_at, math.inf)]
        return self._stops + now_stopped

    def kill(self) -> None:
        if self.died_at is None:
            self.go_on()
            self.died_at = self._loop.time()
            self.is_halted = True
            for mourner in self._mourners:
                self._loop.outside(0, mourner)

    def forget(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(task, None)

    def dispose(self) -> None:
        """Lets the tasks of a dead process unwind, once nothing they do matters any more."""
        self.is_halted = False
        held, self.held = self.held, []
        self._loop.release(held)
        for task in self.tasks:
            task.cancel()


_NO_PROCESS = Context()
