"""The rows that a claim and a finish read of a large database: only as many as they take.

200,000 executions are ready in four lanes and three priorities, and history lies in ninety partitions. Then 20,000 rows
of every lane are deleted while a snapshot is held, so that no vacuum can remove them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import msgspec
import psycopg
import pytest

from rota.clock import SystemClock
from rota.domain.claim_order import LAST_RANK
from rota.ids import FIRST_ID, IdSource
from rota.ops.claim import FIRST_RANK
from rota.ops.gates.offers import PLAIN_OFFERS
from rota.store.postgres import url as postgres_url
from rota.store.postgres.link import Link
from rota.store.postgres.session import Text, literal, load
from tests.support.databases import fresh_database

pytestmark = pytest.mark.xdist_group("postgres plans")

LANES, PER_LANE, DEAD, PARTITIONS = 4, 50_000, 20_000, 90
YEAR_2100 = 4_102_444_800_000_000
TAKE = 100
KINDS = ("int", "bigint", "uuid", "bigint")
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
        plan = _plan(self.link, name, params)
        scanned = sum(
            int(node["Actual Rows"] * node["Actual Loops"])
            for node in _nodes(plan)
            if node.get("Relation Name") == "ready" and "Index" in node["Node Type"]
        )
        return Cost(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], scanned, int(plan["Actual Rows"])), plan

    def claim(self, lanes: Sequence[int], mark: int) -> tuple[Cost, dict[str, Any]]:
        return self.explain(
            "claim", worker=1, now=1, most=TAKE, **_batch([(*one, LAST_RANK) for one in _marks(lanes, mark)])
        )


def _plan(link: Link, name: str, params: dict[str, Any]) -> dict[str, Any]:
    """Carries the statement out, as a worker would, and undoes it."""
    text = load("rota")[name].first
    pgconn = link.connection.pgconn
    escaping = psycopg.pq.Escaping(pgconn)
    values = b", ".join(b"NULL" if value is None else escaping.escape_literal(value) for value in _values(text, params))
    link.begin()
    # EXPLAIN of the statement itself would show a plan for these values, and workers use one for all values.
    pgconn.prepare(b"explained", text.words)
    result = pgconn.exec_(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE explained(" + values + b")")
    assert result.ntuples == 1, result.error_message
    plan: dict[str, Any] = msgspec.json.decode(result.get_value(0, 0) or b"")[0]["Plan"]
    link.rollback()
    pgconn.exec_(b"DEALLOCATE explained")
    return plan


def _first_id(day: int) -> str:
    return str(uuid.UUID(int=(FIRST_DAY_MS + day * DAY_MS) << 80))


def _values(text: Text, params: dict[str, Any]) -> list[bytes | None]:
    return [params[name] if isinstance(params[name], bytes) else str(params[name]).encode() for name in text.parameters]


def _marks(lanes: Sequence[int], mark: int) -> list[tuple[int, int, str]]:
    return [(lane, mark, FIRST_ID) for lane in lanes]


def _batch(rows: Sequence[tuple[Any, ...]]) -> dict[str, bytes]:
    columns = enumerate(zip(zip(*rows, strict=True), KINDS, strict=False))
    return {f"lanes_{index}": literal(column, kind) for index, (column, kind) in columns}


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


@pytest.fixture(scope="module")
def large() -> Iterator[Large]:
    with ExitStack() as closing:
        yield Large(fresh_database(), closing)


@pytest.mark.parametrize("lanes", [[1], [LANES], range(1, LANES + 1)], ids=["first", "last", "all"])
def test_a_claim_behind_its_watermark_reads_only_the_rows_it_takes(large: Large, lanes: Sequence[int]) -> None:
    """However many rows are ready in lanes of jobs that the worker does not have."""
    cost, plan = large.claim(lanes, mark=DEAD * 3)
    assert cost.rows == TAKE
    assert cost.scanned == TAKE
    assert cost.buffers < 25 * TAKE
    assert not [node["Node Type"] for node in _nodes(plan) if node["Node Type"] in ("Sort", "Seq Scan", "Hash Join")]


def test_a_one_statement_claim_reads_no_more_of_each_lane_than_it_takes(large: Large) -> None:
    _prepare_fleet(large)
    lanes = {"offers": PLAIN_OFFERS, "highest": LAST_RANK, **_batch(_marks(range(1, LANES + 1), DEAD * 3))}
    cost, plan = large.explain("claim_at_once", worker=1, now=1, most=TAKE, depth=TAKE // 2, **lanes)
    assert (cost.rows, cost.scanned) == (TAKE, TAKE)
    assert cost.buffers < 25 * TAKE
    assert not [node["Node Type"] for node in _nodes(plan) if node["Node Type"] in ("Sort", "Hash Join")]


def test_claimed_executions_are_read_only_from_their_partitions(large: Large) -> None:
    rows = large.admin.execute("SELECT id FROM rota.execution WHERE id < %s ORDER BY id LIMIT %s", (_first_id(1), TAKE))
    ids = [str(row[0]) for row in rows]
    cost, plan = large.explain("claimed", ids=literal(ids, "uuid"), lowest=min(ids), highest=max(ids))
    parts = {node["Relation Name"] for node in _nodes(plan) if "Relation Name" in node}
    assert cost.rows == len(ids) > 1
    assert parts == {"execution_of_day_0"}
    assert cost.buffers < 6 * len(ids)


def test_the_end_of_an_id_is_searched_for_in_the_newest_rows_only(large: Large) -> None:
    cost, plan = large.explain("ids_ending", namespace="default", pattern="%00010000ea60", newest=TAKE)
    assert cost.scanned == TAKE
    assert max(node["Actual Rows"] * node["Actual Loops"] for node in _nodes(plan)) <= TAKE


def test_a_claim_without_a_watermark_reads_the_dead_rows(large: Large) -> None:
    """So that the tests above are known to measure something."""
    behind, _ = large.claim([1], mark=DEAD * 3)
    from_start, _ = large.claim([1], mark=FIRST_RANK)
    assert from_start.rows == behind.rows == TAKE
    assert from_start.buffers > behind.buffers + DEAD // 100


def test_the_check_before_a_claim_reads_a_few_rows_of_each_lane(large: Large) -> None:
    _prepare_fleet(large)
    marks = _batch(_marks(range(1, LANES + 1), DEAD * 3))
    cost, _ = large.explain("claim_heads", worker=1, now=1, depth=2, **marks)
    assert cost.rows == LANES
    assert cost.scanned == 2 * LANES
    assert cost.buffers < 100
    further, _ = large.explain("lane_ranks", depth=10, **marks)
    assert (further.rows, further.scanned) == (LANES, 10 * LANES)
    assert further.buffers < 100


def test_a_finish_reads_only_the_rows_it_ends(large: Large) -> None:
    large.admin.execute(
        "INSERT INTO rota.running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at) "
        "SELECT id, lane, rank, 1, 1, 0, 0, 1, 1 FROM rota.ready WHERE lane = 1 ORDER BY rank LIMIT 5000"
    )
    ids = [str(row[0]) for row in large.admin.execute("SELECT id FROM rota.running ORDER BY id LIMIT 100")]
    columns = {
        "ids": literal(ids, "uuid"),
        "fences": literal([1] * 100, "bigint"),
        "results": literal(["null"] * 100, "text"),
    }
    cost, plan = large.explain("finish_successes", worker=1, status="success", reason="completed", now=2, **columns)
    assert cost.rows == 1, "how many have ended in their lane"
    assert cost.buffers < 35 * len(ids)
    listed = sum(node["Actual Rows"] * node["Actual Loops"] for node in _nodes(plan) if node["Node Type"] == "CTE Scan")
    assert listed < 7 * len(ids), "the lists of reports and of ended rows are compared row by row"


def test_a_finish_compares_no_report_with_each_running_row() -> None:
    """Autovacuum analyzes `running` every minute, and few rows make the planner careless."""
    url, ids = fresh_database(), list(IdSource(SystemClock()).many(300))
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "INSERT INTO rota.running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at)"
            " SELECT id, 1, 1, 1, 1, 0, 0, 1, 1 FROM unnest(%s::uuid[]) id",
            (ids,),
        )
        admin.execute("ANALYZE rota.running")
    link = Link(postgres_url.parse(url), "plans")
    count = len(ids) // 2
    columns = {
        "ids": literal(ids[:count], "uuid"),
        "fences": literal([1] * count, "bigint"),
        "results": literal(["null"] * count, "text"),
    }
    try:
        plan = _plan(link, "finish_successes", {"worker": 1, "status": "success", "reason": "x", "now": 2, **columns})
    finally:
        link.close()
    assert max(node["Actual Rows"] * node["Actual Loops"] for node in _nodes(plan)) == count
    assert sum(node.get("Rows Removed by Join Filter", 0) for node in _nodes(plan)) == 0


@pytest.mark.parametrize("name", ["count_ends", "unended_of"])
def test_a_list_of_ids_is_not_compared_with_each_row_of_a_young_database(name: str) -> None:
    """That takes minutes if a call with 50,000 keys replaces as many executions."""
    url, ids = fresh_database(), list(IdSource(SystemClock()).many(5000))
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "INSERT INTO rota.lane (namespace, app, job, queue) VALUES ('default', 'shop', 'send', 'default')"
        )
        admin.execute(
            "INSERT INTO rota.execution (id, namespace, app, job, job_version, actor, queue, lane, priority, arguments,"
            " created_at, run_at) SELECT new.id, 'default', 'shop', 'send', 1, '', 'default', lane.id, 0, '{}', 0, 0"
            " FROM rota.lane, unnest(%s::uuid[]) AS new (id)",
            (ids,),
        )
    link = Link(postgres_url.parse(url), "plans")
    bounds = {"lowest": ids[0], "highest": ids[-1]}
    try:
        plan = _plan(link, name, {"ids": literal(ids, "uuid"), "now": 1, "outcome": "cancelled", **bounds})
    finally:
        link.close()
    assert max(node["Actual Rows"] * node["Actual Loops"] for node in _nodes(plan)) == len(ids)
    assert sum(node.get("Rows Removed by Join Filter", 0) for node in _nodes(plan)) == 0


def _prepare_fleet(large: Large) -> None:
    large.admin.execute("INSERT INTO rota.queue (namespace, name) VALUES ('default', 'default') ON CONFLICT DO NOTHING")
    large.admin.execute(
        "INSERT INTO rota.lane (namespace, app, job, queue) "
        "SELECT 'default', 'shop', n::text, 'default' FROM generate_series(1, %s) n ON CONFLICT DO NOTHING",
        (LANES,),
    )
    large.admin.execute(
        "INSERT INTO rota.worker (pid, concurrency, started_at, heartbeat_at, lease_until, namespace, app, name, host, "
        "version, queues, jobs, state) "
        "VALUES (1, 1, 1, 1, %s, 'default', 'shop', 'w', 'h', '1', 'null', '[]', 'live')",
        (YEAR_2100,),  # Whether a worker may claim is compared with the clock of the server.
    )
