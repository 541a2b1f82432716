"""How fast runs of workflows advance, what they cost, and how long other work waits for them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from datetime import timedelta

from benchmarks import flows
from benchmarks.database import Database
from benchmarks.flows import APP, ASLEEP, IN_TURN, VARIABLE, Flows
from benchmarks.processes import Tree
from benchmarks.sections import Samples, cores
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import Stalled, percentile, until
from rota.domain.status import TERMINAL
from rota.sdk.run import Run

PACE_S = 0.02
FEWEST = 3
"""The fewest arrivals beside a map: with fewer, a percentile would mean nothing."""
WARM = 3


def workflows(site: Site, size: Size) -> Samples:
    with _working(site, size) as (database, app, tree):
        yield from _chain(app, size)
        yield from _fan(app, size)
        yield from _many(database, app, size)
        yield "flow_rss", sum(tree.rss_mb())
    with _working(site, size) as (database, app, tree):
        yield from _wide(database, app, size)
        yield "wide_peak", sum(tree.peak_mb())
    with _working(site, size) as (database, app, _):
        yield from _beside(database, app, size)


def sleepers(site: Site, size: Size) -> Samples:
    """What very many sleeping steps cost: placing them, their rows, and a worker that has nothing else to do."""
    runs = size.sleepers // ASLEEP
    with _working(site, size) as (database, app, tree):
        database.settle()
        rss, stored, began = sum(tree.rss_mb()), database.stored_bytes(), time.perf_counter()
        app.dormant.start_many(range(runs))
        until(lambda: database.one(_SLEEPING) >= runs * ASLEEP, "the last sleep's begin", 10 * size.limit_s)
        yield "sleep_rate", runs * ASLEEP / (time.perf_counter() - began)
        database.settle()
        yield "sleep_stored", (database.stored_bytes() - stored) / (runs * ASLEEP)
        yield "sleep_rss", sum(tree.rss_mb()) - rss
        own, server = cores(database, [tree], size.idle_s)
        yield "sleep_cpu", own * 100
        if server is not None:
            yield "sleep_server_cpu", server * 100


def _chain(app: Flows, size: Size) -> Samples:
    """Each step waits for the one before it."""
    began = time.perf_counter()
    assert app.chain.start(7).result(size.limit_s) == 7
    passed = time.perf_counter() - began
    yield "chain_step", passed / size.chain * 1e3


def _fan(app: Flows, size: Size) -> Samples:
    """A list, a map over it, and a step that takes all results."""
    began = time.perf_counter()
    run = app.fan.start(size.fan)
    assert run.result(size.limit_s) == sum(range(size.fan))
    yield "fan_rate", (size.fan + 2) / (time.perf_counter() - began)
    mapped, reduced = run.step("echo"), run.step("total")
    assert mapped.completed_at is not None
    assert reduced.started_at is not None
    yield "fan_in", (reduced.started_at - mapped.completed_at) / timedelta(milliseconds=1)


def _many(database: Database, app: Flows, size: Size) -> Samples:
    """Small runs, all accepted in one transaction and open at once."""
    before, began = database.one(_ENDED), time.perf_counter()
    runs = app.small.start_many(range(size.runs))
    until(lambda: database.one(_ENDED) - before >= size.runs, "the last run's end", size.limit_s)
    yield "many_rate", IN_TURN * size.runs / (time.perf_counter() - began)
    assert [run.result(0) for run in runs] == list(range(size.runs))


def _wide(database: Database, app: Flows, size: Size) -> Samples:
    """A map as wide as a map may be by default."""
    database.settle()
    stored, log = database.stored_bytes(), _log(database)
    began = time.perf_counter()
    run = app.wide.start(size.wide)
    longest_ms = _watched(database, run, began + size.limit_s)
    passed = time.perf_counter() - began
    run.result(0)
    yield "wide_rate", (size.wide + 1) / passed
    yield "wide_stored", (database.stored_bytes() - stored) / size.wide
    if log is not None:
        transactions, written = (after - before for before, after in zip(log, _log(database) or log, strict=True))
        yield "wide_transactions", transactions / size.wide * 1e3
        yield "wide_written", written / size.wide
        yield "wide_longest", longest_ms


def _log(database: Database) -> tuple[int, int] | None:
    """How many transactions have written to a server so far, and how many bytes of its log."""
    if database.server is None:
        return None
    return database.one(_NEXT_TRANSACTION), database.one(_WAL_BYTES)


def _watched(database: Database, run: Run[None], give_up_at: float) -> float:
    """Waits for the end of a run; returns the milliseconds of the longest transaction that was seen meanwhile."""
    longest_ms = 0
    while run.status() not in TERMINAL:
        if database.server is not None:
            longest_ms = max(longest_ms, database.one(_LONGEST_MS))
        if time.perf_counter() > give_up_at:
            raise Stalled(f"run {run.id} is {run.status()}")
        time.sleep(PACE_S)
    return longest_ms


def _beside(database: Database, app: Flows, size: Size) -> Samples:
    """How soon a plain execution of another queue starts while a wide map is not fully placed yet."""
    run = app.wide.start(size.wide)
    until(lambda: _is_expanding(database), "a map that expands", size.limit_s)
    seen, sent = database.probe.count(), 0
    while _is_expanding(database) and sent < size.samples:
        app.stamp.enqueue(sent, time.time())
        sent += 1
        time.sleep(PACE_S)
    if sent < FEWEST:
        raise Stalled(f"the map was placed after {sent} arrivals beside it: make it wider")
    until(lambda: database.probe.count() - seen >= sent, "the last arrival's start", size.limit_s)
    delays = database.probe.delays(sent)
    run.result(size.limit_s)
    yield "beside_arrivals", float(len(delays))
    yield "beside_p50", percentile(delays, 50) * 1e3
    yield "beside_p99", percentile(delays, 99) * 1e3
    yield "beside_max", max(delays) * 1e3


def _is_expanding(database: Database) -> bool:
    return bool(database.one(_UNPLACED))


@contextlib.contextmanager
def _working(site: Site, size: Size) -> Iterator[tuple[Database, Flows, Tree]]:
    """A worker that has run something already."""
    os.environ[VARIABLE] = str(size.chain)
    with site.fresh() as database:
        app = flows.build(database.url)
        try:
            with database.worker(app=APP) as tree:
                for number in range(WARM):
                    assert app.small.start(number).result(size.limit_s) == number
                yield database, app, tree
        finally:
            app.app.close()
            del os.environ[VARIABLE]


_ENDED = "SELECT count(*) FROM run_ended"
_SLEEPING = "SELECT count(*) FROM blocker WHERE kind = 'sleep'"
_UNPLACED = "SELECT count(*) FROM map_open WHERE next_item < width"
_NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
_WAL_BYTES = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"
_LONGEST_MS = """
SELECT coalesce(1000 * extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::bigint
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
