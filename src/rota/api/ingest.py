"""Accepting executions for requests: decoded strictly, checked against their job, and submitted to the store.

The store joins waiting calls only if they have the same header object, so there is one for each set of options. An
enqueue costs its own commit and no read: the job and the quotas are remembered for a few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from rota.api import body, enqueueing, named
from rota.api.call import Call
from rota.api.enqueueing import Enqueue, EnqueueOptions
from rota.api.problem import Flaw, Problem
from rota.api.quotas import QuotaKeeper
from rota.api.services import Services
from rota.api.target import Target, Targets
from rota.api.together import Together
from rota.ops import callbacks
from rota.ops import enqueue as ops
from rota.ops.submission import Accepted, Header, Item
from rota.views import enqueued
from rota.views.enqueued import Enqueued

MOST_HEADERS = 10_000
_ALONE = ("key", "at", "start_by")
"""Options that differ from request to request: headers with them are not kept."""
_decode = msgspec.json.Decoder(Enqueue).decode


class Order(msgspec.Struct, frozen=True, gc=False):
    """One execution to accept."""

    header: Header
    item: Item
    job_id: str
    base: int


class Ingest:
    """What all enqueues of a server share."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.targets = services.part(Targets)
        self.quotas = services.part(QuotaKeeper)
        self._headers: dict[tuple[Any, ...], Header] = {}
        self._together = Together(self._submit)
        self._calling_back: set[str] = set()

    async def order(
        self, call: Call, options: EnqueueOptions, target: Target, pointer: str = "", request: Request | None = None
    ) -> Order:
        """The order for one enqueue of a job; a problem with everything that is wrong with it."""
        most = await self.quotas.most_payload_bytes(call.namespace)
        order = self.checked(call, options, target, most, self.services.ids.new(), pointer, request)
        await self.prepare(order)
        return order

    def checked(
        self,
        call: Call,
        options: EnqueueOptions,
        target: Target,
        most: int,
        id: str,
        pointer: str = "",
        request: Request | None = None,
    ) -> Order:
        """`order`, for a stream of them: with the id, and without waiting. `prepare` must follow."""
        flaws: list[Flaw] = []
        header = self._header(call, options, target, request, pointer, flaws)
        text = enqueueing.arguments(options.arguments, target, most, pointer, flaws)
        if flaws or header is None:
            raise enqueueing.refused(flaws)
        if call.grant.queues is not None or call.grant.jobs is not None:
            named.check_may_enqueue(call, header.job, header.queue)
        if not header.is_keyed:
            return Order(header, Item(id, text), target.id, target.base)
        digest = enqueueing.digest(text) if header.key is not None or header.unique is not None else ""
        key, marked = ("", "") if request is None else (request.key, request.digest)
        return Order(header, Item(id, text, digest, key, marked), target.id, target.base)

    async def prepare(self, order: Order) -> None:
        """Adds the job that calls back, before the first execution of a namespace that has a callback."""
        namespace = order.header.namespace
        if order.header.callback is not None and namespace not in self._calling_back:
            await self.services.transact(callbacks.prepare, namespace)
            self._calling_back.add(namespace)

    def _header(
        self,
        call: Call,
        options: EnqueueOptions,
        target: Target,
        request: Request | None,
        pointer: str,
        flaws: list[Flaw],
    ) -> Header | None:
        trace = enqueueing.trace(call.headers) if "traceparent" in call.headers else None
        requests = None if request is None else request.requests
        is_alone = trace is not None or _alone(options) != _NONE_ALONE
        key = (target.key, call.grant.actor, requests, b"" if is_alone else _mark(options))
        header = None if is_alone else self._headers.get(key)
        if header is None:
            header = enqueueing.header(options, target, call.grant.actor, pointer, flaws)
            if header is not None and (trace is not None or requests is not None):
                header = msgspec.structs.replace(header, trace=trace, requests=requests)
            if header is not None and not is_alone:
                if len(self._headers) >= MOST_HEADERS:
                    self._headers.clear()
                self._headers[key] = header
        return header

    async def submit(self, orders: Sequence[Order]) -> list[Accepted]:
        """Accepts all of the orders or none, in one transaction."""
        header = orders[0].header
        with self.services.room.request():
            if len(orders) == 1 and not header.is_keyed:
                return [await self._together.accept(header, orders[0].item)]
            items = [order.item for order in orders]
            if all(order.header is header for order in orders):
                return await self._submit(header, items)
            future = self.services.store.submit(ops.enqueue_all, [order.header for order in orders], items)
            return await self.services.answer_of(future, has_key=header.requests is not None)

    async def _submit(self, header: Header, items: list[Item]) -> list[Accepted]:
        future = self.services.store.submit(ops.enqueue, header, items)
        return await self.services.answer_of(future, has_key=header.requests is not None)

    async def shown(self, call: Call, orders: Sequence[Order], accepted: Sequence[Accepted]) -> list[Enqueued]:
        """The executions that answer for the orders. Only those that were there before are read."""
        known = [one for one in accepted if not one.created_at]
        found = await call.read(enqueued.of_known, call.namespace, known) if known else {}
        shown = []
        for order, one in zip(orders, accepted, strict=True):
            if one.created_at:
                shown.append(enqueued.of_new(one, order.header, order.job_id, order.base))
            elif one.id in found:
                shown.append(found[one.id])
            else:
                words = f"the key was used for execution {one.id}, whose history is deleted: choose a new key"
                raise Problem("key_conflict", words)
        return shown


class Request(msgspec.Struct, frozen=True):
    """The Idempotency-Key of one item of a request: whose it is, the key with the item's number, and the digest."""

    requests: str
    key: str
    digest: str


def request_of(call: Call, data: bytes, number: int | None = None) -> Request | None:
    """`number` counts the items of a request with several from 1."""
    found = call.request_key()
    if found is None:
        return None
    key = found.key if number is None else f"{found.key} /{number}"
    return Request(f"{found.actor} {found.route}", key, call.digest(data))


def decoded(data: bytes, pointer: str = "") -> Enqueue:
    """One enqueue, whose JSON is checked already; a problem with all flaws."""
    try:
        return _decode(data)
    except msgspec.ValidationError:
        flaws: list[Flaw] = []
        found = body.convert(data, Enqueue, pointer, flaws)
        body.refuse(flaws)
        assert isinstance(found, Enqueue), "the second decoding finds what the first one refused"
        return found


def _mark(options: EnqueueOptions) -> bytes:
    """Equal for equal options, whatever the arguments."""
    given = _given(options)
    return b"" if given == _NONE_GIVEN else msgspec.json.encode(given)


_OPTIONS = [name for name in EnqueueOptions.__struct_fields__ if name != "arguments"]
_given, _alone = attrgetter(*_OPTIONS), attrgetter(*_ALONE)
_NONE_GIVEN, _NONE_ALONE = (None,) * len(_OPTIONS), (None,) * len(_ALONE)
