"""Changes of one execution: its place in line, cancel, replay, discard."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from rota.api import body as bodies
from rota.api import named, quotas
from rota.api.answer import Answer, created, shown
from rota.api.call import Call
from rota.api.problem import bad_member
from rota.api.quotas import QuotaKeeper
from rota.api.resources.executions import LAST_ATTEMPTS, check_owner, owner
from rota.api.route import BASE, Access, NoQuery, route
from rota.domain import duration, job, names, payload
from rota.domain import job_parameters as checks
from rota.domain.access import Scope
from rota.domain.errors import ArgumentsError
from rota.domain.instant import instant
from rota.domain.rank import HIGHEST, LOWEST, level
from rota.domain.status import Status
from rota.ops import control
from rota.ops.control import Cancelled, Replay
from rota.ops.move_in_line import Move, move_in_line
from rota.store import reader
from rota.store.port import Tx
from rota.views import execution
from rota.views.execution import ExecutionDetail
from rota.views.shape import Shape

NOW = "now"

Priority = Annotated[
    Annotated[int, msgspec.Meta(ge=LOWEST, le=HIGHEST)] | Literal["high", "normal", "low"],
    msgspec.Meta(description="A name, or a number from -100 to 100: the higher, the sooner."),
]

LONGEST_NOTE = 1_000


class _Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Null is the same as absent."""


class ExecutionPatch(_Body, frozen=True, kw_only=True):
    """What to change of an execution that has not started. `runAt` is a time, or `now`."""

    priority: Priority | None = None
    run_at: str | None = None
    """The new time of its start, or `now`."""
    queue: str | None = None


class CancelBody(_Body, frozen=True, kw_only=True):
    """`children` also cancels what the execution and its children have enqueued."""

    note: Annotated[str, msgspec.Meta(max_length=LONGEST_NOTE)] | None = None
    children: bool | None = None
    """Whether the executions that it has enqueued, and those below them, are cancelled, too."""


class ReplayBody(_Body, frozen=True, kw_only=True):
    """What the new execution has in place of the old one's. `delay` is seconds, or a text such as 1h30m."""

    arguments: msgspec.Raw = msgspec.field(default_factory=bodies.absent)
    queue: str | None = None
    priority: Priority | None = None
    delay: float | str | None = None


class ExecutionChange(Shape, frozen=True):
    """The status that a request has led to, and whether it changed something."""

    execution_id: str
    status: Status
    changed: bool
    children: int | None = None
    """How many executions below it were cancelled; null if this was not asked for."""


@route(
    "PATCH /executions/{execution}",
    Scope.OPERATE,
    answer=ExecutionDetail,
    example={"priority": 10, "runAt": "now"},
    codes=("not_pending", "conflict", "queue_full", "bad_definition"),
)
async def patch(call: Call, query: NoQuery, body: ExecutionPatch) -> Answer:
    """Changes the priority, the time or the queue of an execution that has not started."""
    id = call.path["execution"]
    if body.queue is not None:
        names.check(body.queue, "a queue's name")
    run_at = None if body.run_at is None else _instant(body.run_at)
    move = Move(priority=_level(body.priority), run_at=run_at, queue=body.queue)

    def show(tx: Tx, changed: bool) -> Answer:
        return shown(execution.execution(tx, call.namespace, id, LAST_ATTEMPTS))

    def op(tx: Tx) -> bool:
        if body.queue is not None:
            _check_may_place(call, tx, body.queue)
        return move_in_line(tx, call.namespace, id, move, call.actor)

    return await call.act(show, op)


@route(
    "POST /executions/{execution}/cancel",
    Access.OPERATE_OR_OWN,
    answer=ExecutionChange,
    example={"note": "wrong customer", "children": True},
    codes=("conflict", "too_many"),
)
async def cancel(call: Call, query: NoQuery, body: CancelBody | None) -> Answer:
    """Cancels an execution; one that runs is asked to stop."""
    id = call.path["execution"]
    given = body or CancelBody()
    own = owner(call)

    def op(tx: Tx) -> Cancelled:
        check_owner(tx, call.namespace, id, own)
        return control.cancel_with(tx, call.namespace, id, call.actor, note=given.note, children=bool(given.children))

    def show(tx: Tx, done: Cancelled) -> Answer:
        return shown(ExecutionChange(id, done.status, done.is_changed, done.children))

    return await call.act(show, op)


@route(
    "POST /executions/{execution}/replay",
    Scope.OPERATE,
    answer=ExecutionDetail,
    status=201,
    example={"priority": 10},
    codes=("not_ended", "conflict", "bad_arguments", "bad_definition", "queue_full", *quotas.CODES),
)
async def replay(call: Call, query: NoQuery, body: ReplayBody | None) -> Answer:
    """Runs an ended execution again, as a new execution. Of a run, the steps that succeeded are kept."""
    id, given, new_id = call.path["execution"], body or ReplayBody(), call.services.ids.new()
    if given.queue is not None:
        names.check(given.queue, "a queue's name")
    wanted = Replay(
        queue=given.queue,
        priority=_level(given.priority),
        delay_s=None if given.delay is None else duration.seconds(given.delay, "delay"),
    )
    keeper = call.services.part(QuotaKeeper)
    most_bytes = await keeper.most_payload_bytes(call.namespace)
    await keeper.admit(call.namespace, 1)

    def op(tx: Tx) -> str:
        _check_may_place(call, tx, given.queue)
        text = _arguments(tx, call.namespace, id, bytes(given.arguments), most_bytes)
        request = msgspec.structs.replace(wanted, arguments=text)
        return control.repeat(tx, call.namespace, id, new_id, call.actor, request)

    def show(tx: Tx, made: str) -> Answer:
        found = execution.execution(tx, call.namespace, made, LAST_ATTEMPTS)
        return created(found, f"{BASE}/executions/{made}")

    return await call.act(show, op)


@route("POST /executions/{execution}/discard", Scope.OPERATE, answer=ExecutionChange)
async def discard(call: Call, query: NoQuery) -> Answer:
    """Takes a failed execution off the dead letters. Its history stays."""
    id = call.path["execution"]

    def op(tx: Tx) -> tuple[Status, int]:
        return reader.status(tx, call.namespace, id), control.discard(tx, call.namespace, [id], call.actor)

    def show(tx: Tx, done: tuple[Status, int]) -> Answer:
        return shown(ExecutionChange(id, done[0], done[1] > 0))

    return await call.act(show, op)


def _check_may_place(call: Call, tx: Tx, queue: str | None) -> None:
    """Refuses a token that may not enqueue for the job of this execution, or for the queue."""
    if call.grant.jobs is not None or call.grant.queues is not None:
        row = reader.execution(tx, call.namespace, call.path["execution"])
        named.check_may_enqueue(call, row.job, queue or row.queue)


def _arguments(tx: Tx, namespace: str, id: str, raw: bytes, most_bytes: int) -> str | None:
    """The arguments of a replay as they are stored, checked against the job; None if there are none."""
    if not raw or raw.strip() == b"null":
        return None
    row = reader.execution(tx, namespace, id)
    values: Any = payload.decode(raw, "arguments")
    if not isinstance(values, dict):
        raise ArgumentsError('arguments are one object by name, such as {"to": "a@b.c"}')
    if len(raw) > most_bytes:
        raise ArgumentsError(f"the arguments are {len(raw):,} bytes of JSON; at most {most_bytes:,} are stored")
    definition = reader.definition(tx, namespace, row.app, row.job)
    if definition is not None:
        checks.check(row.job, values, job.decode(definition).parameters)
    return raw.decode()


def _level(priority: int | str | None) -> int | None:
    return None if priority is None else level(priority)


def _instant(text: str) -> int:
    """A time as the store has it. `now` is any time that has passed."""
    if text == NOW:
        return 0
    try:
        at = msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        at = None
    if at is None or at.tzinfo is None:
        words = f"/runAt: {text[:64]!r} is no time: write 2026-01-31T08:00:00Z with a zone, or now"
        raise bad_member("/runAt", words)
    return instant(at)
