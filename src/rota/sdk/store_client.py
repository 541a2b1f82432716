"""The client port over a database: one method per verb, one operation or read per method."""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from rota.clock import ManualClock
from rota.config import Settings
from rota.domain.errors import NotFinished
from rota.domain.job import Definition, Queue
from rota.domain.schedule import Spec
from rota.domain.source import Source
from rota.domain.status import Status
from rota.domain.workflow.graph import Graph
from rota.ids import IdSource
from rota.ops import calendars, control, deploy, enqueue, schedule
from rota.ops.events import emit, replay
from rota.ops.events.emit import Emission, EmitHeader
from rota.ops.runs import approvals, pause, retry
from rota.ops.runs.approvals import Answer
from rota.ops.runs.retry import Request
from rota.ops.submission import Accepted, Header, Item
from rota.sdk.client import Parent
from rota.sdk.connection import Connection
from rota.store import reader, schedule_reader
from rota.store.hints import Ended, EndWanted, Listener
from rota.store.port import View
from rota.store.reader import Ending, Filter
from rota.views import attempt, dead_letter, event, execution, run, tick, workflow_detail
from rota.views import schedule as views
from rota.views.attempt import Attempt
from rota.views.dead_letter import DeadLetter
from rota.views.event import EventDetail
from rota.views.execution import ExecutionDetail
from rota.views.run import RunDetail
from rota.views.schedule import Schedule
from rota.views.tick import Tick

P = ParamSpec("P")
T = TypeVar("T")
POLL_S = 0.5
FIRST_PAUSE_S = 0.02
"""The pause before the second read; later ones are `POLL_S`. The execution may end after the first read and before this
process has announced that it waits. On PostgreSQL, the process that ended it then repeats its hint. If that hint is
lost, and on SQLite, the second read finds the end."""
ACTOR = "sdk"


class StoreClient:
    """Bound to the namespace of a connection and to an app."""

    def __init__(self, connection: Connection, app: str) -> None:
        self._connection = connection
        self._namespace = connection.settings.namespace
        self._app = app
        self._emit_header = EmitHeader(self._namespace, ACTOR)

    @property
    def settings(self) -> Settings:
        return self._connection.settings

    @property
    def ids(self) -> IdSource:
        return self._connection.ids

    def database(self) -> Connection:
        return self._connection

    def enqueue(self, header: Header, items: list[Item], parent: Parent | None = None) -> list[Accepted]:
        store = self._connection.store()
        if parent is not None:
            return store.transact(enqueue.children, parent, header, items)
        return store.transact(enqueue.enqueue, header, items)

    async def aenqueue(self, header: Header, items: list[Item], parent: Parent | None = None) -> list[Accepted]:
        if parent is not None:
            return await self._connection.transact(enqueue.children, parent, header, items)
        return await self._connection.transact(enqueue.enqueue, header, items)

    # --- Events ----------------------------------------------------------------------------------

    def emit(self, emissions: list[Emission]) -> list[Accepted]:
        return self._connection.store().transact(emit.emit, self._emit_header, emissions)

    async def aemit(self, emissions: list[Emission]) -> list[Accepted]:
        return await self._connection.transact(emit.emit, self._emit_header, emissions)

    def event(self, id: str) -> EventDetail:
        return self._read(event.event, self._namespace, id)

    def replay_event(self, id: str) -> int:
        return self._connection.store().transact(replay.replay, self._namespace, id, ACTOR)

    # --- Executions ------------------------------------------------------------------------------

    def status(self, id: str) -> Status:
        return self._read(reader.status, self._namespace, id)

    def execution(self, id: str) -> ExecutionDetail:
        return self._read(execution.execution, self._namespace, id)

    def attempts(self, id: str) -> list[Attempt]:
        return self._read(attempt.attempts, self._namespace, id)

    def cancel(self, id: str) -> Status:
        return self._connection.store().transact(control.cancel, self._namespace, id, ACTOR)

    # --- Runs ------------------------------------------------------------------------------------

    def run(self, id: str) -> RunDetail:
        return self._read(run.run, self._namespace, id)

    def workflow_version(self, workflow: str, number: int) -> tuple[int, Graph]:
        found = self._read(workflow_detail.chosen, self._namespace, workflow, self._app, number)[1]
        return found.number, workflow_detail.graph_of(found)

    def pause_run(self, id: str, note: str) -> bool:
        return self._connection.store().transact(pause.pause, self._namespace, id, ACTOR, note)

    def resume_run(self, id: str) -> bool:
        return self._connection.store().transact(pause.resume, self._namespace, id, ACTOR)

    def answer_run(self, id: str, step: str | None, *, approved: bool, note: str, by: str | None) -> str:
        given = Answer(approved, by or ACTOR, note, step)
        return self._connection.store().transact(approvals.answer, self._namespace, id, given)

    def retry_run(self, id: str, request: Request) -> str:
        return self._connection.store().transact(retry.retry, self._namespace, id, self.ids.new(), ACTOR, request)

    # --- Dead letters ----------------------------------------------------------------------------

    def dead_letters(self, wanted: Filter, reason: str | None) -> list[DeadLetter]:
        return self._read(dead_letter.dead_letters, self._namespace, wanted, reason).items

    def replay(self, ids: Sequence[str]) -> list[str]:
        successors = dict(zip(ids, self.ids.many(len(ids)), strict=True))
        return self._connection.store().transact(control.replay, self._namespace, successors, ACTOR)

    def discard(self, ids: Sequence[str]) -> int:
        return self._connection.store().transact(control.discard, self._namespace, ids, ACTOR)

    # --- Schedules -------------------------------------------------------------------------------

    def schedule_names(self) -> list[str]:
        return [row.name for row in self._read(schedule_reader.schedules, self._namespace, self._app)]

    def schedule(self, name: str) -> Schedule:
        return self._read(views.schedule, self._namespace, self._app, name)

    def ticks(self, name: str, low: int, high: int, limit: int) -> list[Tick]:
        return self._read(tick.ticks, self._namespace, self._app, name, low, high, limit)

    def put_schedule(self, name: str, spec: Spec) -> None:
        self._connection.store().transact(schedule.put, self._namespace, self._app, name, spec, ACTOR)

    def pause_schedule(self, name: str, note: str) -> bool:
        return self._connection.store().transact(schedule.pause, self._namespace, self._app, name, ACTOR, note)

    def resume_schedule(self, name: str) -> bool:
        return self._connection.store().transact(schedule.resume, self._namespace, self._app, name, ACTOR)

    def remove_schedule(self, name: str) -> bool:
        return self._connection.store().transact(schedule.remove, self._namespace, self._app, name, ACTOR)

    def set_calendar(self, name: str, days: Sequence[str]) -> None:
        self._connection.store().transact(calendars.put, self._namespace, name, days, ACTOR)

    def unset_calendars(self, specs: Sequence[Spec]) -> list[str]:
        return self._connection.store().transact(calendars.unset, self._namespace, specs)

    def declare(
        self,
        definitions: Sequence[Definition],
        queues: Sequence[Queue],
        schedules: Mapping[str, Spec],
        sources: Sequence[Source] = (),
        *,
        takes_precedence: bool,
    ) -> int:
        declared = (self._namespace, self._app, definitions, queues, schedules, sources)
        return self._connection.store().transact(deploy.declare, *declared, takes_precedence=takes_precedence)

    # --- Waiting for an end ----------------------------------------------------------------------

    def wait(self, id: str, timeout_s: float | None) -> Ending | None:
        ending = self._ending(id)
        if ending is not None:
            return ending
        self._check_clock_moves(id)
        clock = self._connection.clock
        give_up_at = None if timeout_s is None else clock.monotonic() + timeout_s
        listener, pause_s = self._listen(id), FIRST_PAUSE_S
        try:
            while ending is None:
                left = pause_s if give_up_at is None else min(pause_s, give_up_at - clock.monotonic())
                if left <= 0:
                    return None
                self._sleep(id, listener, clock.monotonic() + left)
                ending, pause_s = self._ending(id), POLL_S
            return ending
        finally:
            listener.close()

    async def await_end(self, id: str, timeout_s: float | None) -> Ending | None:
        ending = await asyncio.to_thread(self._ending, id)
        if ending is not None:
            return ending
        self._check_clock_moves(id)
        loop, named, listener = asyncio.get_running_loop(), asyncio.Event(), self._listen(id)
        loop.add_reader(listener.fileno(), lambda: named.set() if _is_named(id, listener) else None)
        pause_s = FIRST_PAUSE_S
        try:
            async with asyncio.timeout(timeout_s):
                while ending is None:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause_s):
                            await named.wait()
                    named.clear()
                    ending, pause_s = await asyncio.to_thread(self._ending, id), POLL_S
                return ending
        except TimeoutError:
            return None
        finally:
            loop.remove_reader(listener.fileno())
            listener.close()

    def _check_clock_moves(self, id: str) -> None:
        """A harness runs nothing while a caller waits, and its clock stands still: even a timeout would never come."""
        if isinstance(self._connection.clock, ManualClock):
            raise NotFinished(
                f"execution {id} is {self.status(id)}, and a harness runs nothing while you wait: "
                "call run_until_idle() or advance() first"
            )

    def _ending(self, id: str) -> Ending | None:
        return self._read(reader.ending, self._namespace, id)

    def _listen(self, id: str) -> Listener:
        bus = self._connection.store().bus
        listener = bus.listen(Ended)
        bus.send([EndWanted((id,))])
        return listener

    def _sleep(self, id: str, listener: Listener, until: float) -> None:
        """Sleeps until a hint names this execution, or until it is time to look anyway."""
        clock = self._connection.clock
        while (left := until - clock.monotonic()) > 0:
            readable, _, _ = select.select([listener.fileno()], [], [], left)
            if readable and _is_named(id, listener):
                return

    def _read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._connection.store().read(query, *args, **kwargs)


def _is_named(id: str, listener: Listener) -> bool:
    return any(isinstance(hint, Ended) and id in hint.ids for hint in listener.take())
