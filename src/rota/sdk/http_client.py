"""The client port over the HTTP API of a server: one request per verb, or a few.

The server makes the ids of executions. The ids that this side makes are Idempotency-Keys, so a request whose answer was
lost is repeated and has one effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import msgspec

from rota.clock import MACHINE
from rota.config import Settings
from rota.domain import payload
from rota.domain.decoding import prepare
from rota.domain.errors import ArgumentsError, Conflict, StoreMismatch, UnknownEvent, UnknownSchedule, UsageError
from rota.domain.instant import instant, rfc3339
from rota.domain.job import Definition, Queue
from rota.domain.payload import MOST_NOTE
from rota.domain.schedule import Spec
from rota.domain.source import Source
from rota.domain.status import TERMINAL, Status
from rota.ids import LAST_ID, IdSource, is_id, made_at
from rota.ops.events.emit import Emission
from rota.ops.runs.retry import Request
from rota.ops.submission import Accepted, Header, Item
from rota.sdk import http_bodies
from rota.sdk.client import Parent
from rota.sdk.connection import Connection
from rota.sdk.http_connection import HttpConnection, segment
from rota.sdk.transaction import OVER_HTTP
from rota.store.reader import Ending, Filter, known
from rota.views.attempt import Attempt
from rota.views.dead_letter import DeadLetter
from rota.views.event import EventDetail
from rota.views.execution import ExecutionDetail
from rota.views.run import RunDetail
from rota.views.schedule import Schedule
from rota.views.tick import Tick

T = TypeVar("T")
MOST_TOGETHER = 1000
"""How many executions or events one request takes, all or none."""
MOST_ACTED_ON = 100
"""The answer to a request for at most this many is short enough to be kept for a repeated request."""
LONGEST_WAIT_S = 50.0
FOREVER = 2**62
_ENDING = "status,reason,result,error,app,job,attemptCount"
_DEAD = "executionId,job,app,queue,reason,completedAt,errorMessage,error"


class HttpClient:
    """Bound to a server and to an app. `namespace` is None if the token decides."""

    def __init__(self, connection: Connection, app: str, namespace: str | None) -> None:
        self._connection = connection
        self._http = HttpConnection(connection.settings, namespace)
        self._app = app

    @property
    def settings(self) -> Settings:
        return self._connection.settings

    @property
    def ids(self) -> IdSource:
        return self._connection.ids

    def database(self) -> NoReturn:
        raise UsageError(OVER_HTTP)

    def close(self) -> None:
        self._http.close()

    # --- Enqueueing and events -------------------------------------------------------------------

    def enqueue(self, header: Header, items: list[Item], parent: Parent | None = None) -> list[Accepted]:
        if parent is not None:
            self.database()
        _check_count(len(items), "executions")
        about = http_bodies.enqueue(header)
        bodies = [{**about, "arguments": msgspec.Raw(item.arguments.encode())} for item in items]
        answer = self._http.post("/executions", bodies, key=items[0].id)
        return [Accepted(one.execution_id, one.created) for one in _decoded(answer, _EnqueuedMany).items]

    async def aenqueue(self, header: Header, items: list[Item], parent: Parent | None = None) -> list[Accepted]:
        return await asyncio.to_thread(self.enqueue, header, items, parent)

    def emit(self, emissions: list[Emission]) -> list[Accepted]:
        _check_count(len(emissions), "events")
        answer = self._http.post("/events", [http_bodies.event(one) for one in emissions], key=emissions[0].id)
        return [Accepted(one.event_id, one.created) for one in _decoded(answer, _EmittedMany).items]

    async def aemit(self, emissions: list[Emission]) -> list[Accepted]:
        return await asyncio.to_thread(self.emit, emissions)

    def event(self, id: str) -> EventDetail:
        return self._read(EventDetail, f"/events/{_event(id)}")

    def replay_event(self, id: str) -> int:
        return _decoded(self._http.post(f"/events/{_event(id)}/replay", key=self.ids.new()), _Replayed).deliveries

    # --- Executions ------------------------------------------------------------------------------

    def status(self, id: str) -> Status:
        return self._read(_Status, f"/executions/{known(id)}", fields="status").status

    def execution(self, id: str) -> ExecutionDetail:
        """With all its attempts: the server shows the last ones only."""
        found = self._read(ExecutionDetail, f"/executions/{known(id)}")
        is_whole = not found.attempts or found.attempts[0].fence <= 1
        return found if is_whole else msgspec.structs.replace(found, attempts=self.attempts(id))

    def attempts(self, id: str) -> list[Attempt]:
        return self._all(Attempt, f"/executions/{known(id)}/attempts", order="asc")

    def cancel(self, id: str) -> Status:
        return _decoded(self._http.post(f"/executions/{known(id)}/cancel", key=self.ids.new()), _Status).status

    def wait(self, id: str, timeout_s: float | None) -> Ending | None:
        until = _until(timeout_s)
        path, is_over, left = f"/executions/{known(id)}", False, _left(until)
        while not is_over:
            is_over = left <= 0
            ending = _ending(self._http.get(path, fields=_ENDING, wait=_wait(left)))
            if ending is not None:
                return ending
            left = _left(until)
        return None

    async def await_end(self, id: str, timeout_s: float | None) -> Ending | None:
        until = _until(timeout_s)
        path, is_over, left = f"/executions/{known(id)}", False, _left(until)
        while not is_over:
            is_over = left <= 0
            ending = _ending(await self._http.aget(path, fields=_ENDING, wait=_wait(left)))
            if ending is not None:
                return ending
            left = _left(until)
        return None

    # --- Runs ------------------------------------------------------------------------------------

    def run(self, id: str) -> RunDetail:
        return self._read(RunDetail, f"/runs/{known(id)}", steps="true")

    def workflow_version(self, workflow: str, number: int) -> NoReturn:
        raise UsageError("over HTTP a run is of the version that is in force: leave out version=")

    def pause_run(self, id: str, note: str) -> bool:
        return self._changed(f"/runs/{known(id)}/pause", {"note": payload.clean(str(note), MOST_NOTE)})

    def resume_run(self, id: str) -> bool:
        return self._changed(f"/runs/{known(id)}/resume")

    def answer_run(self, id: str, step: str | None, *, approved: bool, note: str, by: str | None) -> str:
        if by is not None:
            raise UsageError("over HTTP the holder of the token answers an approval: leave out by=")
        asked = self._all(_Asked, "/approvals", run=known(id), status="open" if step is None else None)
        found = [one for one in asked if step in (None, one.step)]
        if step is None and len(found) > 1:
            names = ", ".join(one.step for one in found)
            raise UsageError(f"run {id} waits for {len(found)} answers, so name the step: {names}")
        if not found:
            raise self._not_asked(id, step)
        body = {"note": payload.clean(note, 2 * MOST_NOTE)}
        verb = "approve" if approved else "reject"
        self._http.post(f"/approvals/{found[0].approval_id}/{verb}", body, key=self.ids.new())
        return found[0].step

    def _not_asked(self, id: str, step: str | None) -> UsageError | Conflict:
        names = [one.step for one in self.run(id).steps]
        if step is not None and step not in names:
            return UsageError(f"run {id} has no step {step!r}: its steps are {', '.join(names)}")
        return Conflict(f"run {id} waits for no answer" + (f" to {step}" if step else ""))

    def retry_run(self, id: str, request: Request) -> str:
        answer = self._http.post(f"/runs/{known(id)}/retry", http_bodies.retry(request), key=self.ids.new())
        return _decoded(answer, _Run).run_id

    # --- Dead letters ----------------------------------------------------------------------------

    def dead_letters(self, wanted: Filter, reason: str | None) -> list[DeadLetter]:
        found: list[DeadLetter] = []
        given = {"job": wanted.job, "app": wanted.app, "queue": wanted.queue, "error": wanted.error, "reason": reason}
        until = None if wanted.before == LAST_ID else rfc3339(made_at(known(wanted.before)) + 1000)
        cursor: str | None = None
        while len(found) < wanted.limit:
            parameters = {"dead": "true", "fields": _DEAD, "limit": 1000, "cursor": cursor, "createdTo": until, **given}
            page = _decoded(self._http.get("/executions", **parameters), _Page)
            letters = [_decoded(one, DeadLetter) for one in page.items]
            found += [one for one in letters if _is_within(one, wanted)]
            cursor = page.next_cursor
            if cursor is None:
                break
        return found[: wanted.limit]

    def replay(self, ids: Sequence[str]) -> list[str]:
        done = self._act(ids, action="replay", on="executions", options={"onlyDead": True})
        return [one.created_id for one in done if one.created_id is not None]

    def discard(self, ids: Sequence[str]) -> int:
        return sum(one.changed for one in self._act(ids, action="discard", on="executions"))

    def _act(self, ids: Sequence[str], **about: Any) -> list[_Done]:
        found: list[_Done] = []
        for start in range(0, len(ids), MOST_ACTED_ON):
            body = {**about, "ids": list(ids[start : start + MOST_ACTED_ON])}
            found += _decoded(self._http.post("/actions", body, key=self.ids.new()), _Results).items
        return found

    # --- Schedules -------------------------------------------------------------------------------

    def schedule_names(self) -> list[str]:
        return [one.name for one in self._all(_Named, "/schedules", app=self._app, fields="name")]

    def schedule(self, name: str) -> Schedule:
        return self._read(Schedule, _schedule(name), app=self._app)

    def ticks(self, name: str, low: int, high: int, limit: int) -> list[Tick]:
        # Both ends are included here, and on the server only the first one.
        bounds = {
            "from": rfc3339(low) if low > 0 else None,
            "to": rfc3339(high + 1) if high < FOREVER else None,
        }
        try:
            return self._all(Tick, f"{_schedule(name)}/ticks", most=limit, app=self._app, **bounds)
        except UnknownSchedule:
            return []

    def put_schedule(self, name: str, spec: Spec) -> None:
        body = http_bodies.schedule(spec)
        while True:
            try:
                self._http.post("/schedules", {**body, "name": name, "app": self._app}, key=self.ids.new())
                return
            except Conflict as error:
                if error.code != "name_taken":
                    raise
            try:
                self._http.patch(_schedule(name), body, app=self._app)
                return
            except UnknownSchedule:
                continue  # It was removed a moment ago.

    def pause_schedule(self, name: str, note: str) -> bool:
        return self._changed(f"{_schedule(name)}/pause", {"note": payload.clean(str(note), MOST_NOTE)}, app=self._app)

    def resume_schedule(self, name: str) -> bool:
        return self._changed(f"{_schedule(name)}/resume", app=self._app)

    def remove_schedule(self, name: str) -> bool:
        try:
            self._http.delete(_schedule(name), app=self._app)
        except UnknownSchedule:
            return False
        return True

    def set_calendar(self, name: str, days: Sequence[str]) -> None:
        self._http.put(f"/calendars/{segment(name)}", {"days": list(days)})

    def unset_calendars(self, specs: Sequence[Spec]) -> list[str]:
        set_ = {one.name for one in self._all(_Named, "/calendars", fields="name")}
        return sorted({name for spec in specs for name in spec.calendars} - set_)

    def declare(
        self,
        definitions: Sequence[Definition],
        queues: Sequence[Queue],
        schedules: Mapping[str, Spec],
        sources: Sequence[Source] = (),
        *,
        takes_precedence: bool,
    ) -> NoReturn:
        raise UsageError(
            "over HTTP an app can enqueue, wait and operate; to declare its code, give it the URL of the database, as "
            "its workers have it"
        )

    # --- Requests --------------------------------------------------------------------------------

    def _read(self, kind: type[T], path: str, **parameters: Any) -> T:
        return _decoded(self._http.get(path, **parameters), kind)

    def _all(self, kind: type[T], path: str, most: int | None = None, **parameters: Any) -> list[T]:
        """The items of all pages, or the first `most` of them."""
        found: list[T] = []
        cursor: str | None = None
        while most is None or len(found) < most:
            limit = MOST_TOGETHER if most is None else min(MOST_TOGETHER, most - len(found))
            page = _decoded(self._http.get(path, limit=limit, cursor=cursor, **parameters), _Page)
            found += [_decoded(one, kind) for one in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    def _changed(self, path: str, body: Any = None, **parameters: Any) -> bool:
        return _decoded(self._http.post(path, body, key=self.ids.new(), **parameters), _Changed).changed


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    """The members of an answer that matter here."""


class _Page(_Answer, frozen=True):
    items: list[msgspec.Raw]
    next_cursor: str | None


class _Enqueued(_Answer, frozen=True):
    execution_id: str
    created: bool


class _EnqueuedMany(_Answer, frozen=True):
    items: list[_Enqueued]


class _Emitted(_Answer, frozen=True):
    event_id: str
    created: bool


class _EmittedMany(_Answer, frozen=True):
    items: list[_Emitted]


class _Status(_Answer, frozen=True):
    status: Status


class _Changed(_Answer, frozen=True):
    changed: bool


class _Replayed(_Answer, frozen=True):
    deliveries: int


class _Run(_Answer, frozen=True):
    run_id: str


class _Named(_Answer, frozen=True):
    name: str


class _Asked(_Answer, frozen=True):
    approval_id: str
    step: str


class _Done(_Answer, frozen=True):
    changed: bool
    created_id: str | None = None


class _Results(_Answer, frozen=True):
    items: list[_Done]


class _End(_Answer, frozen=True):
    status: Status
    reason: str | None
    result: msgspec.Raw
    error: msgspec.Raw
    app: str
    job: str
    attempt_count: int


prepare(_Page, _EnqueuedMany, _EmittedMany, _Status, _Changed, _Replayed, _Run, _Named, _Asked, _Results, _End)
prepare(ExecutionDetail, Attempt, EventDetail, RunDetail, DeadLetter, Schedule, Tick)


def _decoded(text: bytes | msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind, strict=False)
    except msgspec.DecodeError as error:
        raise StoreMismatch(
            f"the server answered in a form that this version of Rota does not know ({error}): is it a server of Rota, "
            "and of the same version?"
        ) from None


def _ending(text: bytes) -> Ending | None:
    found = _decoded(text, _End)
    if found.status not in TERMINAL:
        return None
    result, error = (None if bytes(one) == b"null" else bytes(one).decode() for one in (found.result, found.error))
    return Ending(found.status, found.reason or "", result, error, found.app, found.job, found.attempt_count)


def _is_within(letter: DeadLetter, wanted: Filter) -> bool:
    is_late = wanted.since is None or instant(letter.completed_at) >= wanted.since
    return is_late and letter.execution_id < wanted.before


def _check_count(count: int, what: str) -> None:
    if count > MOST_TOGETHER:
        raise ArgumentsError(
            f"over HTTP one call takes at most {MOST_TOGETHER:,} {what}, all or none, not {count:,}: nothing was "
            f"accepted. Split it into calls of {MOST_TOGETHER:,} or fewer"
        )


def _event(id: str) -> str:
    if not is_id(id):
        raise UnknownEvent(f"there is no event {id}")
    return id


def _schedule(name: str) -> str:
    return f"/schedules/{segment(name)}"


def _until(timeout_s: float | None) -> float:
    return float("inf") if timeout_s is None else MACHINE.monotonic() + timeout_s


def _left(until: float) -> float:
    return min(LONGEST_WAIT_S, until - MACHINE.monotonic())


def _wait(left_s: float) -> str | None:
    return f"{left_s:.3f}" if left_s > 0 else None
