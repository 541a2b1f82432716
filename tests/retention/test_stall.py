"""Calls are not delayed while partitions with very many rows are dropped, and others are created.

ROTA_TEST_HISTORY_ROWS says how many executions `make prove` drops (200,000 otherwise); two million and more are worth
a try by hand, with -s to see the figures.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest

from rota.clock import SystemClock
from rota.domain import retention as domain
from rota.domain.outcome import Succeeded
from rota.domain.retention import DAY
from rota.domain.served import Served
from rota.ids import IdSource, first_at
from rota.ops import claim, enqueue, finish, fleet, retention, submission
from rota.store.partitions import Made
from rota.store.postgres import partitions as postgres_partitions
from rota.store.postgres.partitions import PostgresKeeper
from rota.store.postgres.store import PostgresStore
from tests.support.databases import fresh_database
from tests.support.newcomers import newcomer
from tests.support.proving import proof
from tests.support.waiting import eventually
from tests.support.world import APP, NAMESPACE, World

ROWS = int(os.environ.get("ROTA_TEST_HISTORY_ROWS", "200000"))
SAMPLE = 6_000
DAYS = 3
MOST_STALL_S = 1.0
USUAL = 200
FILL = """
INSERT INTO rota.execution
    (id, created_at, run_at, job_version, lane, priority, namespace, app, job, actor, queue, arguments)
SELECT (lpad(to_hex(at / 1000), 12, '0') || '7000800000' || lpad(to_hex(n), 10, '0'))::uuid,
       at, at, 1, 1, 0, 'default', 'shop', 'send', 'test', 'default', '{"n": 1}'
FROM (SELECT n, %(day)s::bigint + n * %(step)s::bigint AS at FROM generate_series(1, %(rows)s) n) made
"""
END = """
INSERT INTO rota.finished (id, worker, started_at, finished_at, fence, final, attempts, crashes, status, reason, result)
SELECT id, 1, created_at, created_at + 1000, 1, 1, 1, 0, 'success', 'completed', 'null' FROM rota.execution
WHERE id >= %(low)s::uuid AND id < %(high)s::uuid
"""


def fill(url: str, day: int, rows: int) -> None:
    with psycopg.connect(url) as connection:
        postgres_partitions._create(connection, "rota", day)
        postgres_partitions._attach(connection, "rota", day)
        connection.execute(FILL, {"day": day, "rows": rows, "step": DAY // (rows + 1)})
        connection.execute(END, {"low": first_at(day), "high": first_at(day + DAY)})


class Traffic:
    """Enqueues, claims and finishes as fast as it can, and remembers how long each call took."""

    def __init__(self, url: str) -> None:
        self.store = PostgresStore(url)
        self.clock = SystemClock()
        self.ids = IdSource(self.clock)
        self.calls: list[tuple[float, float]] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._enqueue, self._work)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self.store.close()

    def longest_s(self, since: float = 0.0) -> float:
        return max((took for began, took in list(self.calls) if began + took >= since), default=0.0)

    def _call(self, op: Callable[..., Any], *args: Any) -> Any:
        began = time.monotonic()
        answer = self.store.transact(op, *args)
        self.calls.append((began, time.monotonic() - began))
        return answer

    def _enqueue(self) -> None:
        header = submission.Header(namespace=NAMESPACE, app=APP, job="send", queue="default", actor="test")
        while not self._ended.is_set():
            self._call(enqueue.enqueue, header, [submission.Item(id, "{}") for id in self.ids.many(10)])

    def _work(self) -> None:
        joining = newcomer(APP, namespace=NAMESPACE, jobs=["send"], concurrency=50)
        worker = self.store.transact(fleet.join, joining, 600.0)
        while not self._ended.is_set():
            claimed = self._call(claim.claim, worker, Served.one(NAMESPACE, APP, None, ["send"]), 50)
            reports = [finish.Finished(one.id, one.fence, Succeeded("1")) for one in claimed.claims]
            if reports:
                assert self._call(finish.finish, reports) == []


@pytest.fixture(params=[SAMPLE, proof(ROWS)])
def traffic(request: pytest.FixtureRequest) -> Iterator[tuple[str, Traffic, int]]:
    url = fresh_database()
    today = domain.day_of(SystemClock().now())
    for number in range(DAYS):
        fill(url, today - (40 + number) * DAY, request.param // DAYS)
    traffic = Traffic(url)
    World(traffic.store, traffic.clock)  # type: ignore[arg-type]
    with traffic:
        yield url, traffic, request.param


@pytest.mark.timeout(900)
def test_executions_are_not_delayed_while_partitions_are_dropped_and_created(traffic: tuple[str, Traffic, int]) -> None:
    url, running, rows = traffic
    keeper = PostgresKeeper(url, SystemClock())
    eventually(lambda: len(running.calls) >= USUAL, what="calls while nothing else happens")
    before_s, count = running.longest_s(), len(running.calls)
    began = time.monotonic()
    now = running.clock.now()
    kept = running.store.read(retention.policy, 30 * domain.DAY_S)
    dropped = []
    while old := domain.days_to_drop(keeper.days(), kept, now):
        dropped += [keeper.drop(day, kept.cutoffs(now)) for day in old]
    dropping_s = time.monotonic() - began
    during_s = running.longest_s(began)
    began = time.monotonic()
    with psycopg.connect(url, autocommit=True) as connection:
        for number in range(20, 26):
            day = domain.day_of(now) + number * DAY
            eventually(partial(makes, connection, day), what="a moment at which the default partitions are free")
    making_s, made_s = time.monotonic() - began, running.longest_s(began)
    assert sum(one.removed for one in dropped) == rows // DAYS * DAYS
    print(f"\n{rows:,} rows in {len(dropped)} days dropped in {dropping_s:.2f} s, 6 days made in {making_s:.2f} s")
    print(f"longest call: {before_s:.3f} s before, {during_s:.3f} s while dropping, {made_s:.3f} s while making")
    print(f"{count} calls before")
    assert during_s < before_s + MOST_STALL_S
    assert made_s < before_s + MOST_STALL_S


def makes(connection: postgres_partitions.Connection, day: int) -> bool:
    """Whether this try has made the partitions of the day. The janitor, too, tries again later."""
    made = Made()
    postgres_partitions._make_one(connection, "rota", day, postgres_partitions.PATIENT_WAITS_MS, lambda: None, made)
    return made.made == [day]
