"""The client port: every call of handles, jobs, apps and schedules to Rota, as verbs with values.

`StoreClient` is the implementation over a database, `HttpClient` the one over the HTTP API of a server. Requests and
answers are plain values or shapes, which can be read from their JSON, and no function is sent. A client is bound to one
namespace, one app and one actor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rota.config import Settings
from rota.domain.job import Definition, Queue
from rota.domain.schedule import Spec
from rota.domain.source import Source
from rota.domain.status import Status
from rota.domain.workflow.graph import Graph
from rota.ids import IdSource
from rota.ops.events.emit import Emission
from rota.ops.runs.retry import Request
from rota.ops.submission import Accepted, Header, Item
from rota.store.reader import Ending, Filter
from rota.views.attempt import Attempt
from rota.views.dead_letter import DeadLetter
from rota.views.event import EventDetail
from rota.views.execution import ExecutionDetail
from rota.views.run import RunDetail
from rota.views.schedule import Schedule
from rota.views.tick import Tick

if TYPE_CHECKING:
    from rota.sdk.connection import Connection

Parent = tuple[str, int]
"""Id and fence of the attempt that enqueues a child."""


class Client(Protocol):
    """The verbs; each is one request."""

    @property
    def settings(self) -> Settings: ...

    @property
    def ids(self) -> IdSource:
        """Makes the ids of new executions."""

    def enqueue(self, header: Header, items: list[Item], parent: Parent | None = None) -> list[Accepted]: ...
    async def aenqueue(self, header: Header, items: list[Item], parent: Parent | None = None) -> list[Accepted]: ...
    def emit(self, emissions: list[Emission]) -> list[Accepted]: ...
    async def aemit(self, emissions: list[Emission]) -> list[Accepted]: ...
    def event(self, id: str) -> EventDetail: ...
    def replay_event(self, id: str) -> int:
        """How many subscribers have received it by this replay so far."""

    def status(self, id: str) -> Status: ...
    def execution(self, id: str) -> ExecutionDetail: ...
    def attempts(self, id: str) -> list[Attempt]: ...
    def wait(self, id: str, timeout_s: float | None) -> Ending | None:
        """How the execution ended, as soon as it has; None after the timeout."""

    async def await_end(self, id: str, timeout_s: float | None) -> Ending | None:
        """`wait`, without blocking the event loop."""

    def cancel(self, id: str) -> Status: ...
    def run(self, id: str) -> RunDetail: ...
    def workflow_version(self, workflow: str, number: int) -> tuple[int, Graph]:
        """The number by which the database knows this version, and its graph."""

    def pause_run(self, id: str, note: str) -> bool: ...
    def resume_run(self, id: str) -> bool: ...
    def answer_run(self, id: str, step: str | None, *, approved: bool, note: str, by: str | None) -> str:
        """Returns the name of the step that was answered."""

    def retry_run(self, id: str, request: Request) -> str:
        """The id of the new run."""

    def dead_letters(self, wanted: Filter, reason: str | None) -> list[DeadLetter]: ...
    def replay(self, ids: Sequence[str]) -> list[str]:
        """The ids of the new executions; ids that are not dead letters are skipped."""

    def discard(self, ids: Sequence[str]) -> int: ...
    def schedule_names(self) -> list[str]: ...
    def schedule(self, name: str) -> Schedule: ...
    def ticks(self, name: str, low: int, high: int, limit: int) -> list[Tick]: ...
    def put_schedule(self, name: str, spec: Spec) -> None: ...
    def pause_schedule(self, name: str, note: str) -> bool: ...
    def resume_schedule(self, name: str) -> bool: ...
    def remove_schedule(self, name: str) -> bool: ...
    def set_calendar(self, name: str, days: Sequence[str]) -> None: ...
    def unset_calendars(self, specs: Sequence[Spec]) -> list[str]:
        """The calendars that these schedules name and that do not exist."""

    def declare(
        self,
        definitions: Sequence[Definition],
        queues: Sequence[Queue],
        schedules: Mapping[str, Spec],
        sources: Sequence[Source] = (),
        *,
        takes_precedence: bool,
    ) -> int:
        """Makes the declarations of code known as a deploy, and returns its number."""

    def database(self) -> Connection:
        """For `within` and `ctx.transaction`, which need the database itself."""
