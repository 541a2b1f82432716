"""What a claim and a finish read of a large database: as much as they take, whatever else there is.

A million executions are ready in four lanes and three priorities, and history lies in ninety partitions. Then a hundred
thousand rows of every lane are deleted while somebody holds a snapshot, so that nothing can clean them up.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import msgspec
import psycopg
import pytest

from rota.clock import SystemClock
from rota.ids import FIRST_ID
from rota.ops.claim import FIRST_RANK, LAST_RANK
from rota.store import postgres_url
from rota.store.postgres_link import Link
from rota.store.postgres_session import Text, literal, load
from tests.support.databases import fresh_database

LANES, PER_LANE, DEAD, PARTITIONS = 4, 250_000, 100_000, 90
TAKE = 100
KINDS = ("bigint", "bigint", "uuid")
DAY_MS = 86_400_000
FIRST_DAY_MS = SystemClock().now() // 1000 // DAY_MS * DAY_MS - (PARTITIONS + 5) * DAY_MS

# Rank n of a lane: priorities come in turn, ids follow the ninety days, and the last digits say lane and number.
FILL = """
INSERT INTO rota.ready (lane, rank, id, fence, attempts, crashes)
SELECT lane, n * 3 + n %% 3, lower(lpad(to_hex(%(first)s + (n %% 90) * 86400000::bigint + n), 12, '0')
       || '7000' || '8000' || lpad(to_hex(lane), 4, '0') || lpad(to_hex(n), 8, '0'))::uuid, 0, 0, 0
FROM generate_series(1, %(lanes)s) lane, generate_series(1, %(rows)s) n
"""
FILL_EXECUTIONS = """
INSERT INTO rota.execution (
    id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, created_at, run_at)
SELECT id, 'default', 'shop', 'send', 1, '', 'default', lane, 0, '{}', 0, 0 FROM rota.ready
WHERE rank < %(most)s * 3 OR (rank > %(dead)s * 3 AND rank < (%(dead)s + %(most)s) * 3)
"""


class Cost(NamedTuple):
    """What a statement did: pages touched, rows that its scans of `ready` returned, and rows of its answer."""

    buffers: int
    scanned: int
    rows: int


class Large:
    """The database, one connection of ours, and one that holds a snapshot."""

    def __init__(self, url: str, closing: ExitStack) -> None:
        self.admin = closing.enter_context(psycopg.connect(url, autocommit=True))
        self._fill()
        self.admin.execute("ANALYZE rota.ready")
        self.admin.execute("ANALYZE rota.execution")
        self.link = Link(postgres_url.parse(url), "plans")
        closing.callback(self.link.close)
        holder = closing.enter_context(psycopg.connect(url))
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM rota.namespace")
        self.admin.execute("DELETE FROM rota.ready WHERE rank <= %s", (DEAD * 3,))

    def _fill(self) -> None:
        for day in range(PARTITIONS):
            for table in ("execution", "finished"):
                self.admin.execute(
                    psycopg.sql.SQL("CREATE TABLE rota.{} PARTITION OF rota.{} FOR VALUES FROM ({}) TO ({})").format(
                        psycopg.sql.Identifier(f"{table}_of_day_{day}"),
                        psycopg.sql.Identifier(table),
                        psycopg.sql.Literal(_first_id(day)),
                        psycopg.sql.Literal(_first_id(day + 1)),
                    )
                )
        self.admin.execute(FILL, {"first": FIRST_DAY_MS, "lanes": LANES, "rows": PER_LANE})
        self.admin.execute(FILL_EXECUTIONS, {"most": 2 * TAKE, "dead": DEAD})

    def explain(self, name: str, **params: Any) -> tuple[Cost, dict[str, Any]]:
        """Carries the statement out, as a worker would, and undoes it."""
        text = load("rota")[name].first
        words = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + text.words
        pgconn = self.link.connection.pgconn
        self.link.begin()
        result = pgconn.exec_params(words, _values(text, params))
        assert result.ntuples == 1, result.error_message
        plan = msgspec.json.decode(result.get_value(0, 0) or b"")[0]["Plan"]
        self.link.rollback()
        scanned = sum(
            int(node["Actual Rows"] * node["Actual Loops"])
            for node in _nodes(plan)
            if node.get("Relation Name") == "ready" and "Index" in node["Node Type"]
        )
        return Cost(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], scanned, int(plan["Actual Rows"])), plan

    def claim(self, lane: int, mark: int) -> tuple[Cost, dict[str, Any]]:
        where = {"lane": lane, "rank": mark, "id": FIRST_ID, "highest": LAST_RANK, "most": TAKE}
        return self.explain("claim", worker=1, now=1, **where)


def _first_id(day: int) -> str:
    return str(uuid.UUID(int=(FIRST_DAY_MS + day * DAY_MS) << 80))


def _values(text: Text, params: dict[str, Any]) -> list[bytes | None]:
    return [params[name] if isinstance(params[name], bytes) else str(params[name]).encode() for name in text.parameters]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


@pytest.fixture(scope="module")
def large() -> Iterator[Large]:
    with ExitStack() as closing:
        yield Large(fresh_database(), closing)


@pytest.mark.parametrize("lane", range(1, LANES + 1))
def test_a_claim_behind_its_mark_reads_what_it_takes(large: Large, lane: int) -> None:
    cost, plan = large.claim(lane, mark=DEAD * 3)
    assert cost.rows == TAKE
    assert cost.scanned == TAKE
    assert cost.buffers < 25 * TAKE
    assert not [node["Node Type"] for node in _nodes(plan) if node["Node Type"] in ("Sort", "Seq Scan", "Hash Join")]


def test_what_was_claimed_is_read_from_its_own_partitions(large: Large) -> None:
    rows = large.admin.execute("SELECT id FROM rota.execution WHERE id < %s ORDER BY id LIMIT %s", (_first_id(1), TAKE))
    ids = [str(row[0]) for row in rows]
    cost, plan = large.explain("claimed", ids=literal(ids, "uuid"), lowest=min(ids), highest=max(ids))
    parts = {node["Relation Name"] for node in _nodes(plan) if "Relation Name" in node}
    assert cost.rows == len(ids) > 1
    assert parts == {"execution_of_day_0"}
    assert cost.buffers < 6 * len(ids)


def test_without_a_mark_a_claim_wades_through_the_dead(large: Large) -> None:
    """So that the tests above are known to measure something."""
    behind, _ = large.claim(1, mark=DEAD * 3)
    from_start, _ = large.claim(1, mark=FIRST_RANK)
    assert from_start.rows == behind.rows == TAKE
    assert from_start.buffers > 2 * behind.buffers


def test_the_look_before_a_claim_reads_one_row_of_each_lane(large: Large) -> None:
    marks = [(lane, DEAD * 3, FIRST_ID) for lane in range(1, LANES + 1)]
    columns = {
        f"marks_{index}": literal(column, kind)
        for index, (column, kind) in enumerate(zip(zip(*marks, strict=True), KINDS, strict=True))
    }
    _prepare_fleet(large)
    served = {"namespace": "default", "app": "shop", "all_queues": b"t", "queues": b"{}"}
    cost, _ = large.explain("claim_heads", worker=1, now=1, no_rank=FIRST_RANK, no_id=FIRST_ID, **served, **columns)
    assert cost.rows == LANES
    assert cost.scanned == LANES
    assert cost.buffers < 100


def test_a_finish_reads_what_it_ends(large: Large) -> None:
    large.admin.execute(
        "INSERT INTO rota.running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at) "
        "SELECT id, lane, rank, 1, 1, 0, 0, 1, 1 FROM rota.ready WHERE lane = 1 ORDER BY rank LIMIT 5000"
    )
    ids = [str(row[0]) for row in large.admin.execute("SELECT id FROM rota.running ORDER BY id LIMIT 100")]
    columns = {
        "rows_0": literal(ids, "uuid"),
        "rows_1": literal([1] * 100, "bigint"),
        "rows_2": literal(["null"] * 100, "text"),
    }
    cost, _ = large.explain("finish_successes", status="success", reason="completed", now=2, **columns)
    assert cost.rows == 0
    assert cost.buffers < 35 * len(ids)


def _prepare_fleet(large: Large) -> None:
    large.admin.execute("INSERT INTO rota.queue (namespace, name) VALUES ('default', 'default') ON CONFLICT DO NOTHING")
    large.admin.execute(
        "INSERT INTO rota.lane (namespace, app, queue, requirements) "
        "SELECT 'default', 'shop', 'default', n::text FROM generate_series(1, %s) n ON CONFLICT DO NOTHING",
        (LANES,),
    )
    large.admin.execute(
        "INSERT INTO rota.worker (pid, concurrency, started_at, heartbeat_at, lease_until, namespace, app, name, host, "
        "version, queues, state) VALUES (1, 1, 1, 1, 10, 'default', 'shop', 'w', 'h', '1', 'null', 'live')"
    )
