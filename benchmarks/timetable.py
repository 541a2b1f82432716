"""A million schedules: what they cost while little happens, and how fast they fire when all are due at once."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from benchmarks.database import Database
from benchmarks.sections import Samples, cores
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import until
from rota.domain import schedule
from rota.domain import trigger as triggers
from rota.domain.instant import MICROSECONDS
from rota.domain.job import Queue
from rota.domain.schedule import SHARDS, Spec
from rota.domain.trigger import Cron, Every
from rota.ops import define, upkeep
from rota.ops.schedule import RUN_TIME, first_at
from rota.sdk.app import registry_of
from rota.store.port import Store, Tx

PIECE = 5_000
PER_S = 36
"""Three million ticks a day."""
PARKED = "parked"
CONTROLS = 50
EXPRESSIONS = 1_000
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney")
SETTLE_S = 3.0


def upcoming(site: Site, size: Size) -> Samples:
    """Next ticks per second: of schedules that share their expressions, and each for the first time."""
    entropy = random.Random(1)
    alike = [_expression(entropy) for _ in range(EXPRESSIONS)]
    now = time.time_ns() // 1000
    for one in alike:
        triggers.first(one, now - 1)
    began = time.perf_counter()
    for number in range(size.upcoming):
        triggers.first(alike[number % EXPRESSIONS], now)
    yield "next_alike", size.upcoming / (time.perf_counter() - began)
    began = time.perf_counter()
    for number in range(size.upcoming // 10):
        triggers.first(alike[number % EXPRESSIONS], now + number * 60 * MICROSECONDS)
    yield "next_fresh", size.upcoming // 10 / (time.perf_counter() - began)


def _expression(entropy: random.Random) -> Cron:
    days = entropy.choice(("*", "1-5"))
    return Cron(f"{entropy.randrange(60)} {entropy.randrange(24)} * * {days}", entropy.choice(ZONES))


def steady(site: Site, size: Size) -> Samples:
    """Many schedules of which a few are due each second."""
    period = size.schedules * MICROSECONDS // PER_S
    with site.fresh() as database:
        began = time.perf_counter()
        _fill(database, (Spec(job="noop", trigger=Every(period, phase)) for phase in _phases(size.schedules, period)))
        yield "steady_fill", size.schedules / (time.perf_counter() - began)
        database.settle()
        began = time.perf_counter()
        with database.worker() as tree:
            yield "steady_start", time.perf_counter() - began
            time.sleep(SETTLE_S)
            since = time.time_ns() // 1000
            own, server = cores(database, [tree], size.steady_s)
            until_now = time.time_ns() // 1000
            yield "steady_rss", sum(tree.rss_mb())
            yield "steady_cpu", own * 100
            if server is not None:
                yield "steady_server_cpu", server * 100
            where = f"outcome = 'fired' AND at BETWEEN {since} AND {until_now - MICROSECONDS // 2}"
            yield "steady_rate", _late_count(database, where) / size.steady_s
            yield "steady_late_p50", _late_ms(database, where, 50)
            yield "steady_late_p99", _late_ms(database, where, 99)


def herd(site: Site, size: Size) -> Samples:
    """All are due in one second, while some others fire every second. No worker runs the executions."""
    with site.fresh() as database:
        store, app = registry_of(database.jobs.app).connection.store(), database.jobs.app
        store.transact(define.register, registry_of(app).settings.namespace, app.name, [], [Queue(name=PARKED)])
        store.transact(define.pause_queue, registry_of(app).settings.namespace, PARKED, "benchmark", "")
        hour = 3600 * MICROSECONDS
        lead_s = 5 + size.schedules / 12_000
        due = (int(time.time() + lead_s) + 1) * MICROSECONDS
        spec = Spec(job="noop", trigger=Every(hour, due % hour), queue=PARKED)
        _fill(database, (spec for _ in range(size.schedules)))
        every = Spec(job="noop_sync", trigger=Every(MICROSECONDS), queue=PARKED, overlap=schedule.Overlap.ALLOW)
        _fill(database, (every for _ in range(CONTROLS)), "control")
        database.settle()
        with database.worker():
            until(lambda: time.time() * MICROSECONDS >= due, "the full hour", 3600)
            until(lambda: _next(store) > due, "the last tick", size.limit_s)
            where = f"at = {due} AND execution IS NOT NULL"
            began = database.one(f"SELECT min(decided_at) FROM tick WHERE {where}")
            passed = database.one(f"SELECT max(decided_at) FROM tick WHERE {where}") - began
            yield "herd", database.one(f"SELECT count(*) FROM tick WHERE {where}") * MICROSECONDS / max(1, passed)
            control = f"schedule IN (SELECT id FROM schedule WHERE job = 'noop_sync') AND at > {due}"
            until(lambda: _late_count(database, control) >= CONTROLS, "a tick of the others", size.limit_s)
        yield "herd_others_p50", _late_ms(database, control, 50)
        yield "herd_others_p99", _late_ms(database, control, 99)


def _next(store: Store) -> int:
    """A cheap read. Counting rows would cost more than the work that is measured."""
    return store.read(upkeep.look, 60.0).next_tick_at or 0


def _phases(count: int, period: int) -> Iterator[int]:
    entropy = random.Random(1)
    return (entropy.randrange(period) for _ in range(count))


def _fill(database: Database, specs: Iterator[Spec], prefix: str = "s") -> None:
    """Schedules in bulk, evenly over the shards, as those of many jobs would be."""
    app = database.jobs.app
    store, namespace = registry_of(app).connection.store(), registry_of(app).settings.namespace

    def add(tx: Tx, piece: list[tuple[str, Spec]]) -> None:
        rows = [
            (name, spec.job, schedule.encode(spec), number % SHARDS, tx.now, first_at(spec, tx.now), None)
            for number, (name, spec) in enumerate(piece)
        ]
        tx.run("add_schedules", rows=rows, namespace=namespace, app=app.name, origin=RUN_TIME)

    piece: list[tuple[str, Spec]] = []
    for number, spec in enumerate(specs):
        piece.append((f"{prefix}{number}", spec))
        if len(piece) == PIECE:
            store.transact(add, piece)
            piece = []
    if piece:
        store.transact(add, piece)


def _late_ms(database: Database, where: str, percent: int) -> float:
    """How long after its tick a schedule was decided."""
    place = max(0, _late_count(database, where) * percent // 100 - 1)
    late = database.one(f"SELECT decided_at - at FROM tick WHERE {where} ORDER BY 1 LIMIT 1 OFFSET {place}")
    return late / 1000


def _late_count(database: Database, where: str) -> int:
    return database.one(f"SELECT count(*) FROM tick WHERE {where}")
