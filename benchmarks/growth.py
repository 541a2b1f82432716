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
    base, some, most = size.backlog
    with fresh(folder) as database:
        database.fill(base)
        empty_cycle = cycles_per_s(database, size.cycles)
        database.fill(some - base)
        yield "cycle_backlog_100x", cycles_per_s(database, size.cycles) / empty_cycle
        database.fill(most - some)
        yield "cycle_backlog_1000x", cycles_per_s(database, size.cycles) / empty_cycle
        yield "drain_backlog", _drain(database, size) / _empty_drain(folder, size)
    with fresh(folder) as database:
        database.fill(size.scheduled, delay="30d")
        yield from _compared(database, folder, size, "scheduled")
    with fresh(folder) as database:
        drained(database, min(size.growth, few), size.limit_s)
        remember(database, few)
        yield from _compared(database, folder, size, "history_10x")
        remember(database, many)
        yield from _compared(database, folder, size, "history_100x")


def _compared(database: Database, folder: Path, size: Size, what: str) -> Samples:
    with fresh(folder) as empty:
        empty.fill(size.backlog[0])
        empty_cycle = cycles_per_s(empty, size.cycles)
    database.fill(size.backlog[0])
    yield f"cycle_{what}", cycles_per_s(database, size.cycles) / empty_cycle
    yield f"drain_{what}", _drain(database, size) / _empty_drain(folder, size)


def _drain(database: Database, size: Size) -> float:
    return drained(database, size.growth, size.limit_s)


def _empty_drain(folder: Path, size: Size) -> float:
    with fresh(folder) as database:
        return _drain(database, size)


def cycles_per_s(database: Database, cycles: int) -> float:
    """How often per second the store can take in, hand out and end a hundred executions."""
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
    worker = store.transact(fleet.join, who, LEASE_S)
    store.transact(cycle, worker, connection.ids.many)  # The first one prepares statements and caches.
    began = time.perf_counter()
    for _ in range(cycles):
        store.transact(cycle, worker, connection.ids.many)
    passed = time.perf_counter() - began
    store.transact(fleet.leave, worker)
    return cycles / passed


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
