"""The same work on databases that hold much more: each is compared with an empty one measured just before it.

Two speeds are compared. `drain` is a worker as users run it. `cycle` is the store alone: a hundred executions
are enqueued, claimed and ended in one transaction, so that what lies in the database stays the same meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.database import Database, fresh
from benchmarks.sections import Samples, drained
from benchmarks.sizes import Size
from rota.domain.outcome import Succeeded
from rota.ops import claim, enqueue, finish, fleet
from rota.ops.enqueue import Header, Item
from rota.ops.finish import Finished
from rota.store.port import Tx

BATCH = 100
LEASE_S = 3600.0
_HEADER = Header(namespace="default", app="bench", job="noop", queue="default")
_DONE = Succeeded("null")


def growth(folder: Path, size: Size) -> Samples:
    few, many = size.history
    _, some, most = size.backlog
    with fresh(folder) as database:
        database.fill(some)
        yield from _cycles(database, folder, size, "backlog_100x")
        database.fill(most - some)
        yield from _cycles(database, folder, size, "backlog_1000x")
        yield from _drains(database, folder, size, "backlog")
    with fresh(folder) as database:
        database.fill(size.scheduled, delay="30d")
        yield from _cycles(database, folder, size, "scheduled")
        yield from _drains(database, folder, size, "scheduled")
    with fresh(folder) as database:
        drained(database, min(size.growth, few), size.limit_s)
        for what, count in (("history_10x", few), ("history_100x", many)):
            remember(database, count)
            yield from _cycles(database, folder, size, what)
            yield from _drains(database, folder, size, what)


def _cycles(database: Database, folder: Path, size: Size, what: str) -> Samples:
    with fresh(folder) as other:
        other.fill(size.backlog[0])
        empty = jobs_per_s(other, size.cycles)
    yield "cycle_empty", empty
    database.fill(size.backlog[0])
    yield f"cycle_{what}", jobs_per_s(database, size.cycles) / empty


def _drains(database: Database, folder: Path, size: Size, what: str) -> Samples:
    with fresh(folder) as other:
        empty = drained(other, size.growth, size.limit_s)
    yield "drain_empty", empty
    yield f"drain_{what}", drained(database, size.growth, size.limit_s) / empty


def jobs_per_s(database: Database, cycles: int) -> float:
    """How many executions per second the store alone can take in, hand out and end."""
    connection = database.jobs.app.connection
    store = connection.store()
    who = fleet.Newcomer(
        namespace="default",
        app="bench",
        name="cycle",
        host="",
        pid=os.getpid(),
        version="",
        queues=None,
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
    taken = claim.claim(tx, worker, _HEADER.namespace, _HEADER.app, None, BATCH)
    finish.finish(tx, [Finished(one.id, one.fence, _DONE) for one in taken.claims])


def remember(database: Database, total: int) -> None:
    """Copies a finished execution under older ids until there are so many: a past as it would have been written."""
    have = database.count("finished")
    connection = sqlite3.connect(database.path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    for table in ("execution", "finished"):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        others = ", ".join(column for column in columns if column != "id")
        connection.execute(_COPY.format(table=table, others=others), {"first": have, "last": total})
    connection.execute("COMMIT")
    connection.close()
    database.check_ended(total)


# The copies' ids begin with a time before all others, and rise as ids do.
_COPY = """
WITH RECURSIVE copy (number) AS (SELECT :first UNION ALL SELECT number + 1 FROM copy WHERE number + 1 < :last)
INSERT INTO {table} (id, {others})
SELECT printf('01900000-0000-7000-8000-%012x', copy.number), {others}
FROM copy CROSS JOIN (SELECT * FROM {table} ORDER BY rowid LIMIT 1)
"""
