"""The same work on databases that hold much more: each is compared with an empty one measured just before it.

Two speeds are compared. `drain` is a worker as users run it. `cycle` is the store alone: a hundred executions
are enqueued, claimed and ended in one transaction, so that the number of rows in the database stays the same meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from benchmarks.database import Database
from benchmarks.sections import Samples, drained
from benchmarks.site import Site
from benchmarks.sizes import Size
from rota.domain.outcome import Succeeded
from rota.domain.served import Served
from rota.ops import claim, enqueue, finish, fleet
from rota.ops.finish import Finished
from rota.ops.submission import Header, Item
from rota.sdk.app import registry_of
from rota.store.port import Tx

BATCH = 100
LEASE_S = 3600.0
_HEADER = Header(namespace="default", app="bench", job="noop", queue="default")
_SERVED = Served.one(_HEADER.namespace, _HEADER.app, None, [_HEADER.job])
_DONE = Succeeded("null")


def growth(site: Site, size: Size) -> Samples:
    few, many = size.history
    _, some, most = size.backlog
    with site.fresh() as database:
        database.fill(some)
        yield from _cycles(database, site, size, "backlog_100x")
        database.fill(most - some)
        yield from _cycles(database, site, size, "backlog_1000x")
        yield from _drains(database, site, size, "backlog")
    with site.fresh() as database:
        database.fill(size.scheduled, delay="30d")
        yield from _cycles(database, site, size, "scheduled")
        yield from _drains(database, site, size, "scheduled")
    with site.fresh() as database:
        drained(database, min(size.growth, few), size.limit_s)
        for what, count in (("history_10x", few), ("history_100x", many)):
            database.remember(count)
            yield from _cycles(database, site, size, what)
            yield from _drains(database, site, size, what)


def _cycles(database: Database, site: Site, size: Size, what: str) -> Samples:
    with site.fresh() as other:
        other.fill(size.backlog[0])
        empty = jobs_per_s(other, size.cycles)
    yield "cycle_empty", empty
    database.fill(size.backlog[0])
    yield f"cycle_{what}", jobs_per_s(database, size.cycles) / empty


def _drains(database: Database, site: Site, size: Size, what: str) -> Samples:
    with site.fresh() as other:
        empty = drained(other, size.growth, size.limit_s)
    yield "drain_empty", empty
    yield f"drain_{what}", drained(database, size.growth, size.limit_s) / empty


def jobs_per_s(database: Database, cycles: int) -> float:
    """How many executions per second the store alone can take in, hand out and end."""
    connection = registry_of(database.jobs.app).connection
    store = connection.store()
    who = fleet.Newcomer(
        namespace="default",
        app="bench",
        name="cycle",
        host="",
        pid=os.getpid(),
        version="",
        queues=None,
        jobs=[_HEADER.job],
        concurrency=BATCH,
    )
    database.settle()
    worker = store.transact(fleet.join, who, LEASE_S)
    store.transact(cycle, worker, connection.ids.many)  # The first one prepares statements and caches.
    began = time.perf_counter()
    for _ in range(cycles):
        store.transact(cycle, worker, connection.ids.many)
    passed = time.perf_counter() - began
    store.transact(fleet.leave, worker)
    return cycles * BATCH / passed


def cycle(tx: Tx, worker: int, new_ids: Callable[[int], Sequence[str]]) -> None:
    enqueue.enqueue(tx, _HEADER, [Item(id, "{}") for id in new_ids(BATCH)])
    taken = claim.claim(tx, worker, _SERVED, BATCH)
    finish.finish(tx, [Finished(one.id, one.fence, _DONE) for one in taken.claims])
