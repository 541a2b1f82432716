"""Events: emit one, many or a stream of them; list them; show what one has started; replay one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from rota.api import body as bodies
from rota.api import listing, named, ndjson
from rota.api.answer import JSON, NDJSON, Answer, created, shown
from rota.api.body import absent
from rota.api.call import Call
from rota.api.line_answers import LineAnswer
from rota.api.problem import Flaw, bad_parameter
from rota.api.query import Page
from rota.api.quotas import Admitted, QuotaKeeper
from rota.api.route import BASE, NoQuery, route
from rota.domain import event, payload, unique
from rota.domain.access import Scope
from rota.domain.decoding import prepare
from rota.domain.errors import UsageError
from rota.domain.instant import instant
from rota.ids import FIRST_ID, LAST_ID
from rota.ops.events import replay as replaying
from rota.ops.events.emit import Emission, EmitHeader, emit
from rota.ops.events.emit_once import Numbered, emit_once
from rota.ops.submission import Accepted
from rota.store import event_reader
from rota.store.event_reader import EventFilter
from rota.store.port import Tx
from rota.views import event as views
from rota.views.event import Event, EventDetail
from rota.views.shape import Shape

MOST_LOOKED_AT = 20_000
"""How many rows a page looks at."""

MOST_EVENTS = 1000


class EventIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """An event to emit. `key` names the fact: an event whose key is known is not emitted again."""

    name: str
    subject: str | None = None
    payload: msgspec.Raw = msgspec.field(default_factory=absent)
    key: str | None = None


prepare(EventIn)


class Emitted(Shape, frozen=True):
    """`created` is false if an event with the same key was there already: then the id is that of this event."""

    event_id: str
    created: bool


class EmittedMany(Shape, frozen=True):
    """In the order of the request."""

    items: list[Emitted]
    """One for each event of the request, in its order."""


class EventQuery(Page, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """`from` and `to` are about the time at which an event was emitted."""

    name: str | None = None
    """The name of the event."""
    subject: str | None = None
    from_: datetime | None = msgspec.field(default=None, name="from")
    to: datetime | None = None


class Replay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """With `force` the event is emitted again as a new one, for all subscribers."""

    force: bool = False
    """Whether jobs that had the event get it again, as a new event."""


class Replayed(Shape, frozen=True):
    """`deliveries` counts what this replay has started so far. `replay_of` is the event that a new one repeats."""

    event_id: str
    deliveries: int
    """How many executions or steps it was given to."""
    replay_of: str | None
    changed: bool


class EmitQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """`answer=ids` is for NDJSON: the answer has the ids of the events."""

    answer: Literal["ids"] | None = None


@route("GET /events", Scope.READ, answer=listing.of(Event))
async def events(call: Call, query: EventQuery) -> Answer:
    """Events, newest first."""
    at = listing.position(call, query)
    is_ascending = (query.order == "asc") != at.is_back
    wanted = EventFilter(
        name=query.name,
        subject=query.subject,
        since=None if query.from_ is None else instant(query.from_),
        until=event_reader.FOREVER if query.to is None else instant(query.to),
        before=at.key[0] if at.key else FIRST_ID if is_ascending else LAST_ID,
        is_ascending=is_ascending,
        limit=query.limit,
        budget=MOST_LOOKED_AT,
    )
    found = await call.read(views.events, call.namespace, wanted)
    scanned_to = None if found.scanned_to is None else [found.scanned_to]
    return listing.page(
        call, query, Event, found.items, lambda one: [one.event_id], has_more=found.has_more, scanned_to=scanned_to
    )


@route(
    "POST /events",
    Scope.ENQUEUE,
    body=EventIn | list[EventIn],
    raw_body=(JSON, NDJSON),
    answer=(Emitted, EmittedMany),
    status=201,
    also={200: Emitted},
    media=(JSON, NDJSON),
    line=LineAnswer,
    example={"name": "order.paid", "subject": "A-17", "payload": {"total": 99.5}, "key": "A-17/paid"},
    codes=("bad_arguments", "key_conflict"),
)
async def emit_events(call: Call, query: EmitQuery) -> Answer:
    """Emits one event, an array of up to 1,000 (all or none), or a stream of NDJSON lines."""
    named.check_is_unlimited(call)
    media = bodies.check_media(call.headers, (JSON, NDJSON))
    if media == NDJSON:
        return await ndjson.ingest(call, EventLines(call), with_ids=query.answer == "ids")
    if query.answer is not None:
        words = f"answer=ids is for a body of {NDJSON}"
        raise bad_parameter("answer", words)
    data = await call.read_body(bodies.MOST_OF_MANY)
    most = call.services.settings.max_payload_bytes + bodies.ROOM_BESIDE_PAYLOAD
    is_many = data.lstrip()[:1] == b"["
    if not is_many and len(data) > most:
        raise bodies.too_large(most)
    await bodies.check(data, MOST_EVENTS, most)
    if is_many:
        return await _emit_many(call, data)
    return await _emit_one(call, data)


@route("GET /events/{event}", Scope.READ, answer=EventDetail)
async def one_event(call: Call, query: NoQuery) -> Answer:
    """One event with its payload and what it has started."""
    return shown(await call.read(views.event, call.namespace, call.path["event"]))


@route("POST /events/{event}/replay", Scope.OPERATE, answer=Replayed, also={201: Replayed}, example={"force": False})
async def replay(call: Call, query: NoQuery, body: Replay | None) -> Answer:
    """Gives an event to jobs that subscribe now and have not had it; with `force` to all, as a new event."""
    named.check_is_unlimited(call)
    id = call.path["event"]
    if body is not None and body.force:
        new_id = call.services.ids.new()

        def show_new(tx: Tx, _: str) -> Answer:
            count = views.event(tx, call.namespace, new_id).deliveries
            about = Replayed(event_id=new_id, deliveries=count, replay_of=id, changed=True)
            return created(about, f"{BASE}/events/{new_id}")

        return await call.act(show_new, replaying.repeat, call.namespace, id, new_id, call.actor)

    def show(tx: Tx, count: int) -> Answer:
        return shown(Replayed(event_id=id, deliveries=count, replay_of=None, changed=count > 0))

    return await call.act(show, replaying.replay, call.namespace, id, call.actor)


class EventLines:
    """Events as the lines of a stream. Line n has the Idempotency-Key K/n."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def begin(self, count: int) -> None:
        return None

    async def order(self, line: bytes, number: int) -> Numbered:
        return await _checked(self._call, line, number)

    async def admit(self, count: int) -> Admitted:
        return Admitted(count)

    async def submit(self, orders: Sequence[Numbered]) -> list[str]:
        return [one.id for one in await _accept(self._call, orders)]


def header(call: Call) -> EmitHeader:
    """Plain values, so that the store joins the calls of one caller that wait together."""
    return EmitHeader(call.namespace, str(call.actor))


async def most_payload_bytes(call: Call) -> int:
    """By the setting, or by the quota of the namespace."""
    return await call.services.part(QuotaKeeper).most_payload_bytes(call.namespace)


def emission(call: Call, given: EventIn, pointer: str, flaws: list[Flaw], most: int) -> Emission | None:
    """A checked event, whose payload has `most` bytes; None if `flaws` got some."""
    before = len(flaws)

    def flaw(member: str, code: str, error: UsageError) -> None:
        flaws.append(Flaw(code, f"{member}: {error}", pointer=f"{pointer}/{member}"))

    text = subject = ""
    try:
        event.check_name(given.name)
    except UsageError as error:
        flaw("name", "bad_field", error)
    try:
        subject = event.check_subject(given.subject)
    except UsageError as error:
        flaw("subject", "bad_field", error)
    try:
        if given.key is not None:
            unique.check_key(given.key, "key")
    except UsageError as error:
        flaw("key", "bad_field", error)
    try:
        text = payload.encode(given.payload if bytes(given.payload) else None, "the payload", most)
    except UsageError as error:
        flaw("payload", "bad_arguments", error)
    if len(flaws) > before:
        return None
    digest = "" if given.key is None else payload.digest(text)
    return Emission(call.services.ids.new(), given.name, text, subject, given.key, digest)


async def _emit_one(call: Call, data: bytes) -> Answer:
    one = (await _checked(call, data, 1)).emission

    def show(tx: object, accepted: list[Accepted]) -> Answer:
        (made,) = accepted
        about = Emitted(event_id=made.id, created=made.created)
        return created(about, f"{BASE}/events/{made.id}") if made.created else shown(about)

    if call.request_key() is not None:
        return await call.act(show, emit, header(call), [one])
    return show(None, await call.services.transact(emit, header(call), [one]))


async def _emit_many(call: Call, data: bytes) -> Answer:
    texts = msgspec.json.decode(data, type=list[msgspec.Raw])
    if len(texts) > MOST_EVENTS:
        raise bodies.too_many(MOST_EVENTS, len(texts))
    flaws: list[Flaw] = []
    found: list[Numbered] = []
    most = await most_payload_bytes(call)
    for number, text in enumerate(texts):
        given = bodies.convert(bytes(text), EventIn, f"/{number}", flaws)
        one = emission(call, given, f"/{number}", flaws, most) if isinstance(given, EventIn) else None
        if one is not None:
            found.append(Numbered(number + 1, hashlib.sha256(bytes(text)).hexdigest(), one))
    bodies.refuse(flaws)
    items = [Emitted(event_id=one.id, created=one.created) for one in await _accept(call, found)]
    return shown(EmittedMany(items=items), 201)


async def _checked(call: Call, text: bytes, number: int) -> Numbered:
    """An event whose JSON is checked already; a problem with all its flaws."""
    flaws: list[Flaw] = []
    most = await most_payload_bytes(call)
    given = bodies.convert(text, EventIn, "", flaws)
    one = emission(call, given, "", flaws, most) if isinstance(given, EventIn) else None
    bodies.refuse(flaws)
    assert one is not None, "an event without flaws"
    return Numbered(number, hashlib.sha256(text).hexdigest(), one)


async def _accept(call: Call, found: Sequence[Numbered]) -> list[Accepted]:
    """All of them or none, in one transaction."""
    request = call.request_key()
    if request is None:
        return await call.services.transact(emit, header(call), [one.emission for one in found])
    return await call.services.transact(emit_once, header(call), request, found)
