"""POST /executions: one execution, up to a thousand at once, or a stream of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from rota.api import body, ndjson
from rota.api.answer import JSON, NDJSON, Answer
from rota.api.call import Call
from rota.api.dry_run import would
from rota.api.enqueueing import Enqueue
from rota.api.ingest import Ingest, Order, decoded, request_of
from rota.api.line_answers import LineAnswer
from rota.api.problem import Flaw, Problem, bad_parameter
from rota.api.quotas import Admitted
from rota.api.route import BASE, route
from rota.api.waiting import Waits, wait_s
from rota.domain.access import Scope
from rota.ops import enqueue as ops
from rota.ops.submission import Accepted
from rota.store.port import Tx
from rota.views import enqueued, execution
from rota.views.enqueued import Enqueued, EnqueuedMany
from rota.views.execution import ExecutionDetail
from rota.views.shape import to_json
from rota.views.why import why

MOST_ITEMS = 1_000


class EnqueueQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """`wait` is for one execution, `answer=ids` for NDJSON."""

    wait: str | None = None
    answer: str | None = None
    dry_run: bool = False


@route(
    "POST /executions",
    Scope.ENQUEUE,
    body=Enqueue | list[Enqueue],
    raw_body=(JSON, NDJSON),
    answer=(Enqueued, EnqueuedMany, ExecutionDetail),
    status=201,
    also={200: (Enqueued, ExecutionDetail, dict[str, Any])},
    media=(JSON, NDJSON),
    line=LineAnswer,
    codes=(
        "unknown_job",
        "ambiguous_name",
        "bad_arguments",
        "forbidden_address",
        "key_conflict",
        "not_unique",
        "clock_skew",
        "queue_full",
        "namespace_full",
        "quota_exceeded",
    ),
    example={"job": "send", "arguments": {"to": "a@b.c"}, "priority": "high"},
)
async def enqueue(call: Call, query: EnqueueQuery) -> Answer:
    """Accepts one execution, an array of up to 1,000 (all or none), or a stream of NDJSON lines."""
    media = body.check_media(call.headers, (JSON, NDJSON))
    _check_query(query, media)
    ingest = call.services.part(Ingest)
    if media == NDJSON:
        return await ndjson.ingest(call, ExecutionLines(call, ingest), with_ids=query.answer == "ids")
    call.request_key()  # A malformed key is refused even if nothing is to be enqueued.
    most = call.services.settings.max_payload_bytes + body.ROOM_BESIDE_PAYLOAD
    data = await call.read_body(max(most, body.MOST_OF_MANY))
    is_many = data.lstrip()[:1] == b"["
    if not is_many and len(data) > most:
        raise body.too_large(most)
    await body.check(data, MOST_ITEMS, most)
    if is_many:
        return await _many(call, ingest, data, query)
    wanted = decoded(data)
    target = await ingest.targets.find(call.namespace, wanted.job, wanted.app)
    order = await ingest.order(call, wanted, target, request=request_of(call, data))
    return await answer_one(call, ingest, order, wait_s(query.wait))


class ExecutionLines:
    """Executions as the lines of a stream."""

    def __init__(self, call: Call, ingest: Ingest) -> None:
        self._call, self._ingest = call, ingest
        self._has_key = call.request_key() is not None
        self._most = 0
        self._ids: Iterator[str] = iter(())

    async def begin(self, count: int) -> None:
        self._most = await self._ingest.quotas.most_payload_bytes(self._call.namespace)
        self._ids = iter(self._call.services.ids.many(count))

    async def order(self, line: bytes, number: int) -> Order:
        wanted = decoded(line)
        targets = self._ingest.targets
        target = targets.remembered(self._call.namespace, wanted.job, wanted.app)
        if target is None:
            target = await targets.find(self._call.namespace, wanted.job, wanted.app)
        request = request_of(self._call, line, number) if self._has_key else None
        order = self._ingest.checked(self._call, wanted, target, self._most, next(self._ids), request=request)
        if order.header.callback is not None:
            await self._ingest.prepare(order)
        return order

    async def admit(self, count: int) -> Admitted:
        return await self._ingest.quotas.admit(self._call.namespace, count, partly=True)

    async def submit(self, orders: Sequence[Order]) -> list[str]:
        return [one.id for one in await self._ingest.submit(orders)]


async def answer_one(call: Call, ingest: Ingest, order: Order, wait: float | None = None) -> Answer:
    """Accepts one execution, waits for its end if that is asked for, and shows it. Also for triggers."""
    if call.is_dry_run:
        return await _dry_run(call, [order])
    admitted = await ingest.quotas.admit(call.namespace, 1)
    if wait is not None:
        return await _waited(call, ingest, order, wait, admitted.headers)
    (accepted,) = await ingest.submit([order])
    (found,) = await ingest.shown(call, [order], [accepted])
    return _answer(accepted, msgspec.json.encode(found), admitted.headers)


async def _waited(call: Call, ingest: Ingest, order: Order, wait: float, headers: dict[str, str]) -> Answer:
    """The execution in full, once it has ended or the time is over."""
    waits = call.services.part(Waits)
    # The id is known before the commit: an end that comes at once is not missed.
    with waits.on(call.namespace, order.item.id, call) as new:
        (accepted,) = await ingest.submit([order])
        if accepted.id == order.item.id:
            await new.ended(wait)
    if accepted.id != order.item.id:
        with waits.on(call.namespace, accepted.id, call) as other:
            await other.look()
            await other.ended(wait)
    found = await call.read(execution.execution, call.namespace, accepted.id)
    # `created` is no member of an execution, but of the answer to an enqueue.
    text = f'{to_json(found)[:-1]}, "created": {"true" if accepted.created else "false"}}}'
    return _answer(accepted, text.encode(), headers)


def _answer(accepted: Accepted, text: bytes, headers: dict[str, str]) -> Answer:
    about = {**headers, "Location": f"{BASE}/executions/{accepted.id}"}
    if accepted.is_replayed:
        about["Idempotency-Replayed"] = "true"
    return Answer(status=201 if accepted.created else 200, body=text, headers=about)


async def _many(call: Call, ingest: Ingest, data: bytes, query: EnqueueQuery) -> Answer:
    """Accepts all of them or none. A problem lists the flaws of all items."""
    if query.wait is not None:
        raise bad_parameter("wait", "wait is for one execution, not for an array")
    items = msgspec.json.decode(data, type=list[msgspec.Raw])
    if len(items) > MOST_ITEMS:
        words = f"an array has at most {MOST_ITEMS:,} executions, not {len(items):,}: send more arrays, or NDJSON"
        raise Problem("too_large", words)
    orders, flaws = [], list[Flaw]()
    for place, item in enumerate(items):
        pointer, raw = f"/{place}", bytes(item)
        try:
            wanted = decoded(raw, pointer)
            target = await ingest.targets.find(call.namespace, wanted.job, wanted.app, pointer)
            request = request_of(call, raw, place + 1)
            orders.append(await ingest.order(call, wanted, target, pointer, request))
        except Problem as problem:
            if not problem.flaws:
                raise
            flaws.extend(problem.flaws)
    body.refuse(flaws)
    if call.is_dry_run:
        return await _dry_run(call, orders)
    admitted = await ingest.quotas.admit(call.namespace, len(orders))
    accepted = await ingest.submit(orders) if orders else []
    found = await ingest.shown(call, orders, accepted)
    headers = dict(admitted.headers)
    if accepted and all(one.is_replayed for one in accepted):
        headers["Idempotency-Replayed"] = "true"
    return Answer(status=201, body=msgspec.json.encode(EnqueuedMany(found)), headers=headers)


async def _dry_run(call: Call, orders: list[Order]) -> Answer:
    """What would be created, and why each execution would not run at once; everything is rolled back."""
    headers, items = [order.header for order in orders], [order.item for order in orders]

    def show(tx: Tx, accepted: list[Accepted]) -> Answer:
        found = enqueued.of_known(tx, call.namespace, accepted)
        items: list[dict[str, Any]] = [
            {"execution": found[one.id], "why": why(tx, call.namespace, one.id)} for one in accepted
        ]
        return would(items[0] if len(items) == 1 else {"items": items})

    return await call.act(show, ops.enqueue_all, headers, items)


def _check_query(query: EnqueueQuery, media: str) -> None:
    if query.answer not in (None, "ids"):
        raise bad_parameter("answer", "answer is ids, or left out")
    if query.answer is not None and media != NDJSON:
        raise bad_parameter("answer", f"answer=ids is for a body of {NDJSON}")
    if media == NDJSON and query.wait is not None:
        raise bad_parameter("wait", "wait is for one execution, not for a stream")
    if media == NDJSON and query.dry_run:
        raise bad_parameter("dryRun", "dryRun is for one execution or an array, not for a stream")
