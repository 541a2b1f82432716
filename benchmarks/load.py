"""Delays and rates under load, and while another session keeps vacuum from its work."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from benchmarks.database import Database
from benchmarks.database_postgres import PostgresDatabase
from benchmarks.sections import BATCH, Samples, drained
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import Stalled, percentile, until

TICK_S = 0.01
ARRIVAL_S = 0.04
AHEAD = 20_000
FEED_S = 0.005


def half(site: Site, size: Size) -> Samples:
    """Pick-up delays while executions come at half of the rate at which the same machine drains them."""
    with site.fresh() as database:
        per_s = drained(database, size.drain, size.limit_s) / 2
    with site.fresh() as database, database.worker():
        count, passed = _come(database, per_s, size)
        until(lambda: database.probe.count() >= count, "the last pick-up", size.limit_s)
        delays = database.probe.delays(min(count, size.samples))
        until(lambda: database.count("finished") >= count, "the last end", size.limit_s)
    yield "half_rate", count / passed
    yield "half_p50", percentile(delays, 50) * 1e3
    yield "half_p99", percentile(delays, 99) * 1e3


def _come(database: Database, per_s: float, size: Size) -> tuple[int, float]:
    """Enqueues every 10 ms as many as this rate asks for. Keeps the delays of `size.samples` of them, evenly spread."""
    wanted = max(1, round(per_s * size.half_s))
    step = max(1, wanted // size.samples)
    began, sent = time.perf_counter(), 0
    while sent < wanted:
        due = min(wanted, round((time.perf_counter() - began) * per_s))
        now = time.time()
        calls = [
            (number // step, now) if number % step == 0 and number // step < size.samples else (0, 0.0)
            for number in range(sent, due)
        ]
        if calls:
            database.jobs.stamp.enqueue_many(calls)
            sent = due
        time.sleep(TICK_S)
    return sent, time.perf_counter() - began


def priority(site: Site, size: Size) -> Samples:
    """How soon a high-priority execution starts if it arrives while the workers have a backlog."""
    with site.fresh() as database:
        database.fill(size.busy)
        database.settle()
        urgent = database.jobs.stamp.options(priority="high")
        with database.worker():
            until(lambda: database.count("ready") < 0.95 * size.busy, "a worker at work", size.limit_s)
            for number in range(size.arrivals):
                time.sleep(ARRIVAL_S)
                urgent.enqueue(number, time.time())
            if database.count("ready") == 0:
                raise Stalled("the backlog was gone before the last arrival: that was no full load")
            until(lambda: database.probe.count() >= size.arrivals, "the last arrival's start", size.limit_s)
        delays = database.probe.delays(size.arrivals)
    yield "priority_p50", percentile(delays, 50) * 1e3
    yield "priority_p99", percentile(delays, 99) * 1e3
    yield "priority_max", max(delays) * 1e3


def snapshot(site: Site, size: Size) -> Samples:
    """Enqueue and drain together, first freely, then while another session holds a snapshot.

    Vacuum cannot remove rows that are deleted meanwhile, because the snapshot may still read them. The rate with the
    snapshot is that of the last quarter, when most dead rows have piled up.
    """
    if site.server is None:
        return
    with site.fresh() as database:
        assert isinstance(database, PostgresDatabase)
        with database.worker(), _fed(database) as rate_for:
            rate_for(size.together_s / 2)
            free = rate_for(min(size.snapshot_s, size.free_s))
            with _held(database):
                quarters = [rate_for(size.snapshot_s / 4) for _ in range(4)]
            yield "snapshot_free", free
            yield "snapshot_held", quarters[-1]
            yield "snapshot_ratio", quarters[-1] / free
            yield "snapshot_worst", min(quarters) / free


@contextlib.contextmanager
def _fed(database: Database) -> Iterator[Callable[[float], float]]:
    """A thread keeps a backlog ahead of the workers; yields a function that measures the rate over some seconds."""
    fed, stop = 0, threading.Event()

    def feed() -> None:
        nonlocal fed
        while not stop.is_set():
            if fed - database.probe.count() < AHEAD:
                database.jobs.stamp.enqueue_many([(0, 0.0)] * BATCH)
                fed += BATCH
            else:
                stop.wait(FEED_S)

    def rate_for(seconds: float) -> float:
        before, began = database.probe.count(), time.perf_counter()
        time.sleep(seconds)
        if not feeder.is_alive():
            raise Stalled("the feeding thread has failed")
        return (database.probe.count() - before) / (time.perf_counter() - began)

    feeder = threading.Thread(target=feed, name="feeder")
    feeder.start()
    try:
        yield rate_for
    finally:
        stop.set()
        feeder.join()
    until(lambda: database.probe.count() >= fed, "the last execution that was fed", 60)
    until(lambda: database.count("finished") >= fed, "the end of the last execution that was fed", 60)


@contextlib.contextmanager
def _held(database: PostgresDatabase) -> Iterator[None]:
    """Another session reads, and does not end its transaction."""
    with database.server.connect(database.name) as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        session.execute("SELECT count(*) FROM rota.worker")
        yield
        session.execute("ROLLBACK")
