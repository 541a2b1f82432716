"""A circuit breaker: whether the service that jobs rely on works."""

from __future__ import annotations

from datetime import datetime

from rota.domain.breaker import UNTIL_CLOSED, Circuit
from rota.ops.breakers import circuits
from rota.store import definition_reader
from rota.store.port import View
from rota.views.shape import Shape, shaped


class Breaker(Shape, frozen=True):
    """`state` is open or closed; `failures` are those in a row.

    `nextTryAt` is null while a breaker is closed, and for one that an operator has opened: that stays open until it is
    closed.
    """

    name: str
    state: str
    """`closed` or `open`."""
    failures: int
    """How many failures in a row it has seen."""
    opened_at: datetime | None
    """When it opened; null while it is closed."""
    next_try_at: datetime | None
    """When one execution may try again; null while it is closed, and if an operator has opened it."""


class BreakerChanged(Breaker, frozen=True):
    """A breaker after an action. `changed` is false if nothing had to change."""

    changed: bool


def breakers(view: View, namespace: str) -> list[Breaker]:
    """Those that have seen a failure."""
    return [_breaker(one) for one in circuits(view, namespace)]


def known_breakers(view: View, namespace: str) -> list[Breaker]:
    """The same, and those that jobs rely on and that have seen none; by name."""
    seen = {one.name: one for one in circuits(view, namespace)}
    declared = {name for row in definition_reader.all_jobs(view, namespace) for name in row.about.needs.breakers}
    return [_breaker(seen.get(name) or Circuit(name)) for name in sorted({*seen, *declared})]


def _breaker(one: Circuit) -> Breaker:
    next_try_at = None if one.retry_at == UNTIL_CLOSED else one.retry_at
    return shaped(Breaker, one, state="closed" if one.opened_at is None else "open", next_try_at=next_try_at)
