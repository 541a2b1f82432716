"""Quotas of namespaces as a server applies them to enqueues, remembered for a few seconds."""

from __future__ import annotations

import math

import msgspec

from rota.api.problem import Problem
from rota.api.services import Services
from rota.domain.errors import RotaError
from rota.domain.quota import NONE, Bucket, Quotas
from rota.ops import quotas as ops
from rota.store import quota_reader

REMEMBERED_S = 5.0
DEPTH_S = 1.0
"""How old the counted depth of a namespace may be. Executions of other servers since then may exceed the limit."""
MOST_REMEMBERED = 10_000
CODES = ("namespace_full", "quota_exceeded")
"""What a request that enqueues may be refused with."""


class Admitted(msgspec.Struct, frozen=True):
    """How many executions may come now; with `partly`, the problem for the others. The headers tell of the rate."""

    count: int
    headers: dict[str, str] = {}
    problem: Problem | None = None


class _Known:
    """What is remembered of one namespace."""

    def __init__(self) -> None:
        self.quotas = NONE
        self.checked_at = self.counted_at = -math.inf
        self.depth = 0
        self.bucket = Bucket()


class QuotaKeeper:
    """The quotas of the namespaces that requests of this server were for."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[str, _Known] = {}
        self._node = services.ids.new()
        self._nodes, self._seen_at = 1, -math.inf

    async def of(self, namespace: str) -> Quotas:
        return (await self._look(namespace)).quotas

    async def admit(self, namespace: str, wanted: int, *, partly: bool = False) -> Admitted:
        """Admits so many executions, or raises a problem with a status of 429; with `partly` some of them."""
        known = await self._look(namespace)
        if known.quotas.executions_per_s is None and known.quotas.max_depth is None:
            return Admitted(wanted)
        room, full = await self._room(namespace, known, wanted, partly=partly)
        found = await self._by_rate(namespace, known, room, partly=partly)
        known.depth += found.count
        return found if found.problem or full is None else msgspec.structs.replace(found, problem=full)

    async def most_payload_bytes(self, namespace: str) -> int:
        most = self._services.settings.max_payload_bytes
        own = (await self._look(namespace)).quotas.max_payload_bytes
        return most if own is None else min(most, own)

    async def _look(self, namespace: str) -> _Known:
        known = self._known.get(namespace)
        if known is None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            known = self._known.setdefault(namespace, _Known())
        now = self._services.clock.monotonic()
        if now - known.checked_at >= REMEMBERED_S:
            was_known, known.checked_at = known.checked_at > -math.inf, now
            try:
                known.quotas = await self._services.read(quota_reader.quotas, namespace)
            except RotaError:
                known.checked_at = -math.inf
                if not was_known:
                    raise
        return known

    async def _room(self, namespace: str, known: _Known, wanted: int, *, partly: bool) -> tuple[int, Problem | None]:
        """How many executions the depth admits, and the problem for the others."""
        limit, now = known.quotas.max_depth, self._services.clock.monotonic()
        if limit is None:
            return wanted, None
        if now - known.counted_at >= DEPTH_S:
            known.counted_at = now
            known.depth = await self._services.read(quota_reader.depth, namespace, limit + 1)
        room = max(0, limit - known.depth)
        if wanted <= room:
            return wanted, None
        words = f"the namespace {namespace} is full ({known.depth:,} of {limit:,} executions queued): repeat later"
        full = Problem("namespace_full", words)
        if not partly or not room:
            raise full
        return room, full

    async def _by_rate(self, namespace: str, known: _Known, wanted: int, *, partly: bool) -> Admitted:
        rate = known.quotas.executions_per_s
        if rate is None:
            return Admitted(wanted)
        nodes = await self._count_nodes()
        burst = max(1.0, (known.quotas.burst or max(1.0, rate)) / nodes)
        verdict = known.bucket.admit(self._services.clock.monotonic(), wanted, rate / nodes, burst, partly=partly)
        headers = _headers(rate, verdict.left, verdict.retry_after_s)
        if verdict.admitted == wanted:
            return Admitted(wanted, headers)
        words = f"the namespace {namespace} may enqueue {rate:g} executions per second: repeat more slowly"
        if wanted > burst and not partly:
            words = (
                f"{wanted:,} executions at once exceed the burst of {burst:,.0f} of the namespace: send fewer at once"
            )
        after_s = max(0.001, verdict.retry_after_s)
        spent = Problem("quota_exceeded", words, retry_after=after_s, headers=headers)
        if not partly or not verdict.admitted:
            raise spent
        return Admitted(verdict.admitted, headers, spent)

    async def _count_nodes(self) -> int:
        """The live servers, this one included."""
        now = self._services.clock.monotonic()
        if now - self._seen_at >= REMEMBERED_S:
            self._seen_at = now
            self._nodes = await self._services.transact(ops.seen, self._node)
        return self._nodes

    def close(self) -> None:
        """The share of this server goes to the others at once, if the database answers."""
        if self._seen_at > -math.inf:
            self._services.store.submit(ops.gone, self._node)


def _headers(rate: float, left: int, after_s: float) -> dict[str, str]:
    window_s = max(1, math.ceil(1 / rate))
    return {
        "RateLimit-Policy": f'"enqueue";q={max(1, math.floor(rate * window_s))};w={window_s}',
        "RateLimit": f'"enqueue";r={left};t={max(1, math.ceil(after_s))}',
    }
