"""Circuit breakers: their state, and opening and closing one by hand."""

from __future__ import annotations

import msgspec

from rota.api import listing, problem
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.dry_run import Dry, would
from rota.api.named import NamedPage
from rota.api.route import NoQuery, route
from rota.domain.access import Scope
from rota.ops import breakers as ops
from rota.store.port import Tx, View
from rota.views import breaker as views
from rota.views.breaker import Breaker, BreakerChanged


@route("GET /breakers", Scope.READ, answer=listing.of(Breaker))
async def list_breakers(call: Call, query: NamedPage) -> Answer:
    """Circuit breakers that jobs rely on or that have seen a failure, in the order of their names."""
    found = await call.read(views.known_breakers, call.namespace)
    return listing.of_all(call, query, Breaker, found, lambda one: [one.name])


@route("GET /breakers/{breaker}", Scope.READ, answer=Breaker)
async def get(call: Call, query: NoQuery) -> Answer:
    """One circuit breaker."""
    return shown(await call.read(_find, call.namespace, call.path["breaker"]))


@route("POST /breakers/{breaker}/close", Scope.OPERATE, answer=BreakerChanged)
async def close(call: Call, query: Dry) -> Answer:
    """Lets executions of all jobs that rely on the breaker start again."""

    def act(tx: Tx) -> bool:
        known = _find(tx, call.namespace, call.path["breaker"])
        has_failed = known.state == "open" or known.failures > 0
        return has_failed and ops.close(tx, call.namespace, known.name, call.actor)

    return await call.act(lambda tx, is_changed: _changed(call, tx, is_changed), act)


@route("POST /breakers/{breaker}/open", Scope.OPERATE, answer=BreakerChanged)
async def open_by_hand(call: Call, query: Dry) -> Answer:
    """Starts no execution that relies on the breaker, not even a probe, until it is closed by hand."""

    def act(tx: Tx) -> bool:
        known = _find(tx, call.namespace, call.path["breaker"])
        return ops.open_by_hand(tx, call.namespace, known.name, call.actor)

    return await call.act(lambda tx, is_changed: _changed(call, tx, is_changed), act)


def _find(view: View, namespace: str, name: str) -> Breaker:
    for one in views.known_breakers(view, namespace):
        if one.name == name:
            return one
    raise problem.not_found()


def _changed(call: Call, tx: Tx, is_changed: bool) -> Answer:
    now = _find(tx, call.namespace, call.path["breaker"])
    value = BreakerChanged(**msgspec.structs.asdict(now), changed=is_changed)
    return would(value) if call.is_dry_run else shown(value)
