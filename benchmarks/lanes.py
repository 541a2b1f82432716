"""What many busy jobs cost: `python -m benchmarks.lanes sqlite 50` (or `postgres`).

Two databases have the same backlog, one of a single job and one of many jobs in turn. Claims and finishes of a hundred
executions alternate between the two, so that other load on the machine meets both. Prints the processor time of client
and server for each execution, and the median of the ratios.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from rota.clock import SystemClock
from rota.domain.job import Definition
from rota.domain.outcome import Succeeded
from rota.domain.served import Served
from rota.ids import FIRST_ID, IdSource
from rota.ops import claim, define, enqueue, fleet
from rota.ops.finish import Finished
from rota.ops.submission import Header, Item
from rota.store.port import Store
from rota.store.postgres.store import PostgresStore
from rota.store.sqlite.store import SqliteStore
from tests.support.databases import fresh_database

ROWS, BATCH, LEASE_S = 10_000, 100, 3600.0
_BACKENDS = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


def main(database: str, many: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        urls = [f"sqlite:///{folder}/{jobs}.db" if database == "sqlite" else fresh_database() for jobs in (1, many)]
        one, other = (_turns(url, jobs) for url, jobs in zip(urls, (1, many), strict=True))
        costs = [(next(one), next(other)) for _ in range(ROWS // BATCH)][2:]
        ratio = statistics.median(second / first for first, second in costs)
        first, second = (statistics.median(cost) for cost in zip(*costs, strict=True))
        print(f"{database}: one job {first:.1f} µs, {many} jobs {second:.1f} µs for each execution; ratio {ratio:.2f}")


def _turns(url: str, count: int) -> Iterator[float]:
    """Microseconds for each execution of one claim after the other, with the finish of those before."""
    store: Store = SqliteStore(url, inline=True) if url.startswith("sqlite") else PostgresStore(url, inline=True)
    jobs = [f"job_{number}" for number in range(count)]
    worker, served = _fill(store, jobs), Served.one("default", "bench", None, jobs)
    servers = _servers(url)
    marks: dict[int, claim.Mark] = {}
    reports: list[Finished] = []
    while True:
        began = _spent_ns(servers)
        told = list(marks.values()) or None
        claimed = store.transact(claim.finish_and_claim, reports, worker, served, BATCH, told).claimed
        reports = [Finished(one.id, one.fence, Succeeded("null")) for one in claimed.claims]
        marks |= {lane: (lane, claim.FIRST_RANK, FIRST_ID) for lane in claimed.lanes or ()}
        marks |= {mark[0]: mark for mark in claimed.marks}
        assert len(reports) == BATCH
        yield (_spent_ns(servers) - began) / 1000 / BATCH


def _fill(store: Store, jobs: list[str]) -> int:
    """Executions of all jobs in turn, and a worker that has the jobs."""
    store.transact(define.register, "default", "bench", [Definition(name=job) for job in jobs], [])
    ids = IdSource(SystemClock())
    headers = [Header(namespace="default", app="bench", job=job, queue="default") for job in jobs]
    for _ in range(0, ROWS, BATCH):
        for header in headers:
            store.transact(enqueue.enqueue, header, [Item(id, "{}") for id in ids.many(BATCH // len(jobs))])
    who = fleet.Newcomer(
        namespace="default",
        app="bench",
        name="lanes",
        host="",
        pid=os.getpid(),
        version="",
        queues=None,
        jobs=jobs,
        concurrency=BATCH,
    )
    return store.transact(fleet.join, who, LEASE_S)


def _servers(url: str) -> list[Path]:
    """Where Linux counts the time of the processes that serve this database."""
    if url.startswith("sqlite"):
        return []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        return [Path(f"/proc/{pid}/schedstat") for (pid,) in connection.execute(_BACKENDS)]


def _spent_ns(servers: list[Path]) -> int:
    return time.process_time_ns() + sum(int(path.read_text().split()[0]) for path in servers)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
