"""A circuit breaker: whether the service that jobs rely on works."""

from __future__ import annotations

from datetime import datetime

from rota.domain.breaker import Circuit
from rota.ops.breakers import circuits
from rota.store.port import View
from rota.views.shape import Shape, moment_or_none, shaped


class Breaker(Shape, frozen=True):
    """`state` is open or closed; `failures` are those in a row."""

    name: str
    state: str
    failures: int
    opened_at: datetime | None
    next_try_at: datetime | None


def breakers(view: View, namespace: str) -> list[Breaker]:
    """Those that have seen a failure."""
    return [_breaker(circuit) for circuit in circuits(view, namespace)]


def _breaker(circuit: Circuit) -> Breaker:
    state = "closed" if circuit.opened_at is None else "open"
    return shaped(Breaker, circuit, state=state, next_try_at=moment_or_none(circuit.retry_at))
