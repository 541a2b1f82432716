"""One round of each section, except those of growth, peers and others that have files of their own."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks import raw
from benchmarks.database import Database
from benchmarks.jobs import Jobs
from benchmarks.processes import Tree
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import percentile, until
from rota import Job

Samples = Iterator[tuple[str, float]]
Section = Callable[[Site, Size], Samples]

PACE_S = 0.02
SETTLE_S = 1.0
OPEN_S = 4.0
"""By then a node has opened every connection that it keeps; the last one is for its heartbeats."""
BATCH = 1_000
BULK_CALLS = 5
BURSTS = 15


def raw_limits(site: Site, size: Size) -> Samples:
    yield "raw_commits", raw.commits_per_s(site, size.raw_s)
    yield "raw_rows", raw.rows_per_s(site, size.raw_s)


def enqueue(site: Site, size: Size) -> Samples:
    """Without a worker: only what the caller waits for."""
    for name, count in zip(("bulk_small", "bulk_large"), size.bulk, strict=True):
        with site.fresh() as database:
            yield name, _bulk(database, count)
    for threads in (1, 16, 32):
        with site.fresh() as database:
            yield f"enqueue_{threads}", single(database, threads, size.single_s)


def drain(site: Site, size: Size) -> Samples:
    for name, concurrency in (("drain", None), ("drain_200", 200)):
        with site.fresh() as database:
            yield name, drained(database, size.drain, size.limit_s, concurrency)
    with site.fresh() as database:
        for start in range(0, size.drain_sync, BATCH):
            database.jobs.noop_sync.enqueue_many([()] * min(BATCH, size.drain_sync - start))
        yield "drain_sync", _drained(database, size.drain_sync, size.limit_s)
    with site.fresh() as database, database.worker():
        began, enqueued = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < size.together_s:
            database.jobs.noop.enqueue_many([()] * BATCH)
            enqueued += BATCH
        yield "together_enqueue", enqueued / passed
        yield "together_drain", database.ended() / passed


def burst(site: Site, size: Size) -> Samples:
    """A worker that has nothing else to do gets many executions at once: from their commit to the last end."""
    for name in ("noop", "noop_sync"):
        with site.fresh() as database, database.worker():
            job = getattr(database.jobs, name)
            waits = [_burst(database, job, size) for _ in range(BURSTS)]
            yield f"burst_{name}", size.burst / statistics.median(waits)


def latency(site: Site, size: Size) -> Samples:
    with site.fresh() as database, database.worker():
        time.sleep(min(SETTLE_S, size.idle_s))
        delays = pickups(database, size)
        yield "pickup_p50", percentile(delays, 50) * 1e3
        yield "pickup_p99", percentile(delays, 99) * 1e3
        waits = [_round_trip(database.jobs, number, size.limit_s) for number in range(size.results)]
        yield "result_p50", percentile(waits, 50) * 1e3
        yield "result_p99", percentile(waits, 99) * 1e3


def idle(site: Site, size: Size) -> Samples:
    with site.fresh() as database, database.worker(processes=1) as tree:
        time.sleep(min(SETTLE_S, size.idle_s))
        supervisor, *below = tree.rss_mb()
        child = sum(tree.rss_mb("rota.cli.child_main"))
        yield "rss_supervisor", supervisor
        yield "rss_child", child
        yield "rss_switch", sum(below) - child
        yield "rss", supervisor + sum(below)
        yield "pss", tree.pss_mb()
        own, server = cores(database, [tree], size.idle_s)
        yield "idle_cpu", own * 100
        if server is not None:
            yield "idle_server_cpu", server * 100
        database.fill(size.drain)
        until(lambda: database.ended() >= size.drain, "the drain", size.limit_s)
        yield "rss_after", sum(tree.rss_mb())
    with site.fresh() as database, database.worker(processes=1, trace=True):
        time.sleep(min(OPEN_S, size.idle_s))
        yield "idle_queries", statements_per_s(database, size.idle_s)


def single(database: Database, threads: int, seconds: float) -> float:
    """Enqueues per second, one by one, from this many threads."""
    counts = [0] * threads
    gate = threading.Barrier(threads + 1)

    def call(index: int) -> None:
        enqueue = database.jobs.noop.enqueue
        gate.wait()
        while time.perf_counter() < stop_at:
            enqueue()
            counts[index] += 1

    callers = [threading.Thread(target=call, args=(index,)) for index in range(threads)]
    for caller in callers:
        caller.start()
    began = time.perf_counter()
    stop_at = began + seconds
    gate.wait()
    for caller in callers:
        caller.join()
    passed = time.perf_counter() - began
    assert database.count("ready") == sum(counts)
    return sum(counts) / passed


def drained(database: Database, count: int, limit_s: float, concurrency: int | None = None) -> float:
    """Enqueues this many no-op jobs, then lets one worker end them; returns how many per second."""
    database.fill(count)
    return _drained(database, count, limit_s, concurrency)


def _drained(database: Database, count: int, limit_s: float, concurrency: int | None = None) -> float:
    database.settle()
    drain = database.drain(count, limit_s)
    with database.worker(concurrency=concurrency):
        return drain.per_s()


def pickups(database: Database, size: Size) -> list[float]:
    """Seconds from just before each enqueue to the first line of the job, in a worker that has nothing else to do."""
    before = database.probe.count()
    for number in range(size.pickups):
        time.sleep(PACE_S)
        database.jobs.stamp.enqueue(number, time.time())
    until(lambda: database.probe.count() - before >= size.pickups, "the last pick-up", size.limit_s)
    return database.probe.delays(size.pickups)


def _burst(database: Database, job: Job[..., Any, Any], size: Size) -> float:
    """Seconds, by the time that the last end was recorded with: polling would be too coarse."""
    expected = database.ended() + size.burst
    job.enqueue_many([()] * size.burst)
    began = time.time()
    until(lambda: database.ended() >= expected, "the end of a burst", size.limit_s)
    return database.one("SELECT max(finished_at) FROM finished") / 1e6 - began


def _bulk(database: Database, count: int) -> float:
    """Large calls one after the other, once the caller has its connection."""
    calls = [()] * count
    database.jobs.noop.enqueue_many(calls[:BATCH])
    began = time.perf_counter()
    for _ in range(BULK_CALLS):
        database.jobs.noop.enqueue_many(calls)
    passed = time.perf_counter() - began
    assert database.count("ready") == BULK_CALLS * count + len(calls[:BATCH])
    return BULK_CALLS * count / passed


def _round_trip(jobs: Jobs, number: int, limit_s: float) -> float:
    began = time.perf_counter()
    assert jobs.echo.enqueue(number).result(timeout=limit_s) == number
    return time.perf_counter() - began


def cores(database: Database, trees: Sequence[Tree], seconds: float) -> tuple[float, float | None]:
    """How many cores the processes use meanwhile, and how many the server, if there is one."""
    server = database.server
    began, before = time.perf_counter(), sum(tree.cpu_s() for tree in trees)
    server_before = server.cpu_s() if server else 0.0
    time.sleep(seconds)
    passed = time.perf_counter() - began
    own = (sum(tree.cpu_s() for tree in trees) - before) / passed
    return own, (server.cpu_s() - server_before) / passed if server else None


def statements_per_s(database: Database, seconds: float) -> float:
    """Of all traced processes."""
    before, began = database.statements(), time.perf_counter()
    time.sleep(seconds)
    return (database.statements() - before) / (time.perf_counter() - began)
