"""A circuit breaker: whether the service that jobs rely on works."""

from __future__ import annotations

from datetime import datetime

from rota.ops.breakers import circuits
from rota.store.port import View
from rota.views.shape import Shape, shaped


class Breaker(Shape, frozen=True):
    """`state` is open or closed; `failures` are those in a row."""

    name: str
    state: str
    failures: int
    opened_at: datetime | None
    next_try_at: datetime | None


def breakers(view: View, namespace: str) -> list[Breaker]:
    """Those that have seen a failure."""
    return [
        shaped(Breaker, one, state="closed" if one.opened_at is None else "open", next_try_at=one.retry_at)
        for one in circuits(view, namespace)
    ]
