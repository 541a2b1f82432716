"""The rows that the lists of executions read: within the budget, for a large tenant and for a small one beside it.

One namespace has many executions of four jobs, nearly all of them ended, and another one has ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from rota.clock import MACHINE
from rota.domain.status import Status
from rota.store import execution_reader
from rota.store.execution_reader import Criteria, Where
from rota.store.opening import open_store
from rota.store.port import Store, View
from rota.store.postgres.session import PostgresSession
from rota.store.scan import MOST_ROWS, Budget, Found
from rota.store.sqlite.file import connect
from rota.views import count, execution_list, search
from tests.support.databases import fresh_database
from tests.support.proving import proof

pytestmark = pytest.mark.xdist_group("list plans")

SMALL = 10
STEPS_PER_ROW = 120
"""Instructions of SQLite's virtual machine for a row that is read, filtered and shown."""
LOOK_UPS = 8
"""Rows that a filter looks up for each row of a list: its state may be in six tables."""

# Numbers from 1 to n as ids of the last minutes; the last digits are the number.
SQLITE_IDS = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count),
ids AS (
    SELECT i, printf('%08x-%04x-7000-8000-%012x', (:first + i) >> 16, (:first + i) & 65535, :offset + i) AS id FROM n)
"""
POSTGRES_IDS = """
WITH ids AS (
    SELECT i, (lpad(to_hex((%(first)s::bigint + i) >> 16), 8, '0') || '-' ||
               lpad(to_hex((%(first)s::bigint + i) & 65535), 4, '0') ||
               '-7000-8000-' || lpad(to_hex(%(offset)s::bigint + i), 12, '0'))::uuid AS id
    FROM generate_series(1, %(count)s) i)
"""
EXECUTIONS = """
INSERT INTO execution (
    id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, created_at, run_at, parent, tags)
SELECT id, :namespace, 'shop', 'job' || (i % 4), 1, 'sdk', 'default', :lane + i % 4, 0, '{}', (:first + i) * 1000, 0,
       NULL, CASE WHEN i % 100 = 7 THEN '["x"]' END
FROM ids
"""
TAGS = "INSERT INTO tag (namespace, tag, id) SELECT :namespace, 'x', id FROM ids WHERE i % 100 = 7"
# Of a hundred: one failed, one queued, one scheduled, one cancelled; the others succeeded.
FINISHED = """
INSERT INTO finished (id, fence, final, status, reason, attempts, crashes, finished_at, error)
SELECT id, 1, 1, CASE i % 100 WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled' ELSE 'success' END,
       CASE i % 100 WHEN 1 THEN 'error' ELSE 'completed' END, 1, 0, :first * 1000,
       CASE i % 100 WHEN 1 THEN '{"type":"ValueError","message":"boom","traceback":""}' END
FROM ids WHERE i % 100 NOT IN (3, 4)
"""
DEAD = """
INSERT INTO dead (id, namespace, app, job, queue, reason, failed_at, fingerprint)
SELECT id, :namespace, 'shop', 'job' || (i % 4), 'default', 'error', 0, 'f' || (i % 3) FROM ids WHERE i % 100 = 1
"""
READY = """
INSERT INTO ready (lane, rank, id, fence, attempts, crashes)
SELECT :lane + i % 4, i, id, 0, 0, 0 FROM ids WHERE i % 100 = 3
"""
SCHEDULED = """
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes)
SELECT id, :lane + i % 4, 0, :first * 2000, 0, 0, 0 FROM ids WHERE i % 100 = 4
"""
FILLS = (EXECUTIONS, TAGS, FINISHED, DEAD, READY, SCHEDULED)

LISTS: dict[str, Criteria] = {
    "all": Criteria(),
    "job": Criteria(job=("job1",)),
    "success": Criteria(status=(Status.SUCCESS,)),
    "failed": Criteria(status=(Status.FAILED,)),
    "failed of a job": Criteria(status=(Status.FAILED,), job=("job1",)),
    "cancelled": Criteria(status=(Status.CANCELLED,)),
    "queued": Criteria(status=(Status.QUEUED,)),
    "scheduled": Criteria(status=(Status.SCHEDULED,)),
    "running": Criteria(status=(Status.RUNNING,)),
    "waiting": Criteria(status=(Status.WAITING,)),
    "tag": Criteria(tag=("x",)),
    "dead": Criteria(dead=True),
    "dead of a job": Criteria(dead=True, job=("job1",)),
    "error": Criteria(error="boom"),
    "error type": Criteria(error_type=("ValueError",)),
    "parent": Criteria(parent=("01900000-0000-7000-8000-000000000000",)),
    "run": Criteria(run=("01900000-0000-7000-8000-000000000000",)),
    "replay": Criteria(replay_of=("01900000-0000-7000-8000-000000000000",)),
    "key": Criteria(key=("k",)),
    "queue": Criteria(queue=("default",)),
    "nothing": Criteria(actor=("nobody",)),
    "no queue": Criteria(queue=("nosuch",)),
    "no reason": Criteria(reason=("nosuch",)),
    "no worker": Criteria(worker=("12345",)),
}
SCANS = {"nothing", "no queue", "no reason", "no worker"}
"""No index helps: a page ends at its budget."""


class Large:
    """A filled database, and the cost of a read of it."""

    def __init__(self, store: Store, count: int, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.count, self.first = store, count, first
        self._monkeypatch = monkeypatch

    def cost(self, query: Callable[..., Any], *args: Any) -> tuple[Any, int]:
        """What the query returns, and how many rows it has read, or could have read in its instructions."""
        return self.store.read(self._measured, query, *args)

    def _measured(self, view: View, query: Callable[..., Any], *args: Any) -> tuple[Any, int]:
        if isinstance(view, PostgresSession):
            rows: list[int] = []
            with self._monkeypatch.context() as patch:
                answer = PostgresSession._run_with_postponed

                def explained(session: PostgresSession, text: Any, values: Any) -> Any:
                    words = b"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + text.words
                    result = session._pgconn.exec_params(words, values)
                    assert result.ntuples == 1, result.error_message
                    rows.append(_rows_read(msgspec.json.decode(result.get_value(0, 0) or b"")[0]["Plan"]))
                    return answer(session, text, values)

                patch.setattr(PostgresSession, "_run_with_postponed", explained)
                return query(view, *args), sum(rows) // LOOK_UPS
        steps = [0]

        def tick() -> int:
            steps[0] += 1
            return 0

        connection: Any = view._connection  # type: ignore[attr-defined]
        connection.set_progress_handler(tick, STEPS_PER_ROW)
        try:
            return query(view, *args), steps[0]
        finally:
            connection.set_progress_handler(None, 0)


def _rows_read(plan: dict[str, Any]) -> int:
    own = 0
    if "Relation Name" in plan:
        assert plan["Node Type"] != "Seq Scan" or plan["Relation Name"] in _TINY, plan
        own = int((plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"])
    return own + sum(_rows_read(child) for child in plan.get("Plans", ()))


_TINY = {"lane", "queue", "job", "worker", "schedule"}


@pytest.fixture(scope="module", params=[20_000, proof(1_000_000)])
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def large(request: pytest.FixtureRequest, size: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    path: Path = tmp_path_factory.mktemp("plans") / "rota.db"
    url = f"sqlite:///{path}" if request.param == "sqlite" else fresh_database()
    first = MACHINE.now() // 1000 - size
    store = open_store(url)
    tenants = [("large", size, 0, 1), ("small", SMALL, size, 5)]
    if request.param == "sqlite":
        _fill_sqlite(path, first, tenants)
    else:
        _fill_postgres(url, first, tenants)
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Large(store, size, first, monkeypatch)
    store.close()


def _fill_sqlite(path: Path, first: int, tenants: list[tuple[str, int, int, int]]) -> None:
    connection = connect(str(path), write=True)
    connection.execute("BEGIN")
    for namespace, count_, offset, lane in tenants:
        _add_lanes(lambda text, values: connection.execute(text.replace("%s", "?"), values), namespace)
        values = {"namespace": namespace, "count": count_, "first": first, "offset": offset, "lane": lane}
        for text in FILLS:
            head, _, rest = text.partition("SELECT")
            connection.execute(f"{head} {SQLITE_IDS} SELECT {rest}", values)
    connection.execute("COMMIT")
    connection.close()


def _fill_postgres(url: str, first: int, tenants: list[tuple[str, int, int, int]]) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SET search_path = rota")
        for namespace, count_, offset, lane in tenants:
            _add_lanes(lambda text, values: admin.execute(text.encode(), values), namespace)
            values = {"namespace": namespace, "count": count_, "first": first, "offset": offset, "lane": lane}
            for text in FILLS:
                head, _, rest = text.replace("%", "%%").partition("SELECT")
                for name, kind in (("namespace", "text"), ("first", "bigint"), ("lane", "int")):
                    rest = rest.replace(f":{name}", f"%({name})s::{kind}")
                admin.execute(f"{head} {POSTGRES_IDS} SELECT {rest}".encode(), values)
        admin.execute("ANALYZE")


def _add_lanes(execute: Callable[[str, Any], Any], namespace: str) -> None:
    execute("INSERT INTO namespace (name, created_at) VALUES (%s, 0)", (namespace,))
    execute("INSERT INTO queue (namespace, name) VALUES (%s, 'default')", (namespace,))
    for job in range(4):
        text = "INSERT INTO lane (namespace, app, job, queue) VALUES (%s, 'shop', %s, 'default')"
        execute(text, (namespace, f"job{job}"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("namespace", ["large", "small"])
@pytest.mark.parametrize("name", LISTS)
def test_a_page_reads_no_more_rows_than_its_budget(large: Large, name: str, namespace: str) -> None:
    middle = f"{(large.first + large.count // 2) >> 16:08x}-{(large.first + large.count // 2) & 65535:04x}-7000"
    positions = [None, f"{middle}-8000-000000000000"]
    for after in positions:
        for is_ascending in (False, True):
            where = Where(after=after, is_ascending=is_ascending)
            found, cost = large.cost(_shown, namespace, LISTS[name], where)
            bound = MOST_ROWS if name in SCANS and namespace == "large" else 2_000
            assert cost <= bound, (name, namespace, after, is_ascending, cost)
            if namespace == "small":
                assert not found.has_more


@pytest.mark.timeout(900)
def test_case_11_a_filter_that_matches_nothing_comes_to_its_end(large: Large) -> None:
    after, pages = None, 0
    while True:
        where = Where(after=after)
        found = large.store.read(execution_reader.page, "large", Criteria(actor=("nobody",)), where, 50, Budget())
        if pages == 0:
            assert found.has_more or large.count <= MOST_ROWS
        assert found.keys == []
        pages += 1
        if not found.has_more:
            break
        after = found.reached
    assert pages >= large.count // MOST_ROWS


@pytest.mark.timeout(900)
@pytest.mark.parametrize("by", [None, *count.By])
def test_counts_are_bounded(large: Large, by: count.By | None, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = Criteria(dead=True) if by is count.By.FINGERPRINT else Criteria()
    found = large.store.read(count.executions, "large", dead, by)
    assert found.count > 0
    assert found.is_capped or dead.dead or large.count <= 10 * count.MOST
    monkeypatch.setattr(count, "MOST_S", 60.0)  # The plans are measured, not the time.
    small, cost = large.cost(count.executions, "small", dead, by)
    assert (small.is_capped, cost <= 4_000) == (False, True)


def test_a_search_reads_few_rows(large: Large) -> None:
    id = large.store.read(execution_reader.page, "large", Criteria(), Where(), 1).keys[0]
    for text in (id, id[:10], id[:4], "job", "def"):
        _, cost = large.cost(search.search, "large", text)
        assert cost <= 1_000


def _shown(view: View, namespace: str, wanted: Criteria, where: Where) -> Found[str]:
    found = execution_reader.page(view, namespace, wanted, where, 50, Budget(seconds=60.0))
    execution_list.items(view, namespace, found.keys)
    return found
