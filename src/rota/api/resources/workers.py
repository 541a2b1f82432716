"""Workers: the processes that run executions, and draining one."""

from __future__ import annotations

from datetime import datetime

import msgspec

from rota.api import listing, named
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.dry_run import would
from rota.api.named import OfApp, OfAppOrDry
from rota.api.query import Page
from rota.api.route import route
from rota.domain.access import Scope
from rota.domain.instant import instant
from rota.ops import fleet as ops
from rota.store.port import Tx, View
from rota.views import worker as views
from rota.views.worker import NEVER, Worker, WorkerChanged


class WorkerQuery(Page, frozen=True, kw_only=True, rename="camel"):
    """`since` adds the workers that stopped since then, such as `1h` for an hour ago."""

    app: str | None = None
    state: str | None = None
    """Only workers in this state."""
    queue: str | None = None
    since: datetime | None = None
    """Workers that stopped at this time or later are listed, too."""


@route("GET /workers", Scope.READ, answer=listing.of(Worker))
async def list_workers(call: Call, query: WorkerQuery) -> Answer:
    """Worker processes, newest first: what they serve, how busy they are, and whether they are live."""
    since = NEVER if query.since is None else instant(query.since)
    found = await call.read(views.workers, call.namespace, since)
    wanted = [one for one in found if _fits(one, query)]
    # Padded, so that the texts of a cursor are in the order of the numbers.
    return listing.of_all(call, query, Worker, wanted, lambda one: [one.worker_id.zfill(20)])


@route("GET /workers/{worker}", Scope.READ, answer=Worker, codes=("ambiguous_name",))
async def get(call: Call, query: OfApp) -> Answer:
    """One worker process, by its id or its name."""
    return shown(await call.read(_find, call.namespace, call.path["worker"], query.app))


@route("POST /workers/{worker}/drain", Scope.OPERATE, answer=WorkerChanged, codes=("ambiguous_name",))
async def drain(call: Call, query: OfAppOrDry) -> Answer:
    """Lets a worker process finish its executions, claim no more, and exit."""

    def act(tx: Tx) -> tuple[str, bool]:
        known = _find(tx, call.namespace, call.path["worker"], query.app)
        return known.worker_id, ops.ask_to_drain(tx, call.namespace, int(known.worker_id), call.actor)

    def show(tx: Tx, done: tuple[str, bool]) -> Answer:
        now = _find(tx, call.namespace, done[0], None)
        value = WorkerChanged(**msgspec.structs.asdict(now), changed=done[1])
        return would(value) if call.is_dry_run else shown(value)

    return await call.act(show, act)


def _fits(worker: Worker, query: WorkerQuery) -> bool:
    return (
        query.app in (None, worker.app)
        and query.state in (None, worker.state)
        and (query.queue is None or worker.queues is None or query.queue in worker.queues)
    )


def _find(view: View, namespace: str, thing: str, app: str | None) -> Worker:
    """By its id, also if it has stopped; or by its name, of those that have not."""
    if named.is_id(thing):
        wanted, known = str(named.number(thing)), views.workers(view, namespace, 0)
        found = [one for one in known if one.worker_id == wanted]
    else:
        found = [one for one in views.workers(view, namespace) if one.name == thing]
    found = [one for one in found if app in (None, one.app)]
    return named.the_one(found, thing, lambda one: (one.worker_id, one.app))
