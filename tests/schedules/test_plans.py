"""What the statements about schedules read: no table that grows is read from end to end, on either database.

On PostgreSQL there are a hundred thousand schedules, half of them waiting for an execution, and as long a ledger, and
each statement is carried out, and undone; what counts is how many pages it touched. SQLite goes by the indexes alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import msgspec
import psycopg
import pytest

from rota.clock import SystemClock
from rota.store import statements
from rota.store.postgres import url as postgres_url
from rota.store.postgres.link import Link
from rota.store.postgres.session import Text, literal, load
from rota.store.sqlite.store import SqliteStore
from tests.support.databases import fresh_database
from tests.support.world import NAMESPACE

pytestmark = pytest.mark.xdist_group("schedule plans")

SECOND = 1_000_000
FROM, TO = 50_000 * SECOND, 50_100 * SECOND
TABLES = ("schedule", "hand", "tick", "execution", "finished", "ready", "running", "scheduled", "waiting")
WHOLE = {"schedules"}
"""Those who ask for all schedules get all of them."""
FEW_PAGES = 400
ID = "01a1e118-7d40-7000-8783-acbdfd83612f"

VALUES: dict[str, Any] = (
    {"namespace": NAMESPACE, "app": "shop", "name": "s500", "job": "j500", "origin": "code", "all_apps": False}
    | {"actor": "", "note": "", "days": "[]", "spec": "{}", "schedule": 1, "id": 1, "most": 20, "each": 5}
    | {"schedules": 20, "low": FROM, "high": TO, "bound": FROM, "until": TO, "now": TO, "cursor": TO, "next_at": TO}
    | {"at": TO}
)
OF_A_KIND = {"bigint": 7, "int": 7, "uuid": ID, "text": "s500"}
FILL = """
INSERT INTO rota.schedule (created_at, updated_at, namespace, app, name, job, origin, spec)
SELECT 1, 1, 'default', 'shop', 's' || n, 'j' || n, CASE WHEN n % 5000 = 0 THEN 'code' ELSE 'run_time' END, '{}'
FROM generate_series(1, 100000) n;
INSERT INTO rota.hand (schedule, revision, cursor, next_at, waits_for, shard)
SELECT id, 1, 1, id * 1000000, CASE WHEN id % 2 = 0 THEN gen_random_uuid() END, id % 64 FROM rota.schedule;
INSERT INTO rota.tick (schedule, at, until, count, decided_at, outcome)
SELECT n % 4 + 1, n * 1000000::bigint, n * 1000000::bigint + CASE WHEN n % 10 = 0 THEN 1 ELSE 0 END, 2,
       n * 1000000::bigint, 'missed'
FROM generate_series(1, 100000) n;
ANALYZE rota.schedule, rota.hand, rota.tick
"""


def names() -> list[str]:
    text = (resources.files("rota.store") / "queries" / "schedule.sql").read_text()
    return sorted(set(re.findall(r"^-- name: (\w+)", text, re.MULTILINE)) - WHOLE)


def value(name: str, parameter: str) -> Any:
    if parameter == "after":
        return ID if name.endswith(("followers", "end")) else 7
    return ID if parameter == "last" else VALUES[parameter]


@pytest.fixture(scope="module")
def sqlite() -> Iterator[SqliteStore]:
    store = SqliteStore("sqlite://:memory:", SystemClock(), inline=True)
    yield store
    store.close()


@pytest.mark.parametrize("name", names())
def test_sqlite_uses_an_index_for_the_statement(sqlite: SqliteStore, name: str) -> None:
    for text in statements.load("sqlite")[name]:
        parameters = set(re.findall(r"(?<!:):([a-z_]\w*)", text))
        lists = set(re.findall(r"json_each\(:(\w+)\)", text))
        bound = {one: "[]" if one in lists else value(name, one) for one in parameters}
        plan = sqlite.read(_explain, text, bound)
        aliases = dict(re.findall(rf"\b({'|'.join(TABLES)}) (?:AS )?([a-z])\b", text))
        read = [line for line in plan if _scans(line, {*TABLES, *aliases.values()})]
        assert not read, (text, plan)


def _explain(view: Any, text: str, bound: dict[str, Any]) -> list[str]:
    return [row[3] for row in view._connection.execute(f"EXPLAIN QUERY PLAN {text}", bound)]


def _scans(line: str, tables: set[str]) -> bool:
    found = re.match(r"SCAN (\w+)", line)
    return found is not None and found[1] in tables


class Large:
    """A PostgreSQL server that knows how much there is."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url, autocommit=True) as admin:
            for text in FILL.split(";"):
                admin.execute(text.encode())
        self.link = Link(postgres_url.parse(url), "plans")

    def pages(self, name: str) -> int:
        """How many pages the statement touches, if each batch has one row and `most` is twenty."""
        statement = load("rota")[name]
        kinds = {f"{batch}_{n}": kind for batch, all_ in statement.columns.items() for n, kind in enumerate(all_)}
        kinds |= statement.lists
        self.link.begin()
        try:
            return sum(self._pages(name, text, kinds) for text in (statement.first, *statement.rest))
        finally:
            self.link.rollback()

    def _pages(self, name: str, text: Text, kinds: dict[str, str]) -> int:
        values = [self._value(name, one, kinds.get(one)) for one in text.parameters]
        words = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + text.words
        result = self.link.connection.pgconn.exec_params(words, values)
        assert result.ntuples == 1, result.error_message
        plan = msgspec.json.decode(result.get_value(0, 0) or b"")[0]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    @staticmethod
    def _value(name: str, parameter: str, kind: str | None) -> bytes:
        if kind is not None:
            return literal([OF_A_KIND[kind]], kind)
        found = value(name, parameter)
        return (b"t" if found else b"f") if isinstance(found, bool) else str(found).encode()


@pytest.fixture(scope="module")
def large() -> Iterator[Large]:
    found = Large(fresh_database())
    yield found
    found.link.close()


@pytest.mark.parametrize("name", names())
def test_postgres_reads_few_pages_for_the_statement(large: Large, name: str) -> None:
    assert large.pages(name) < FEW_PAGES


def test_a_sequential_scan_is_detected(large: Large, sqlite: SqliteStore) -> None:
    whole = Text(b"", b"SELECT count(*) FROM rota.hand WHERE last_outcome = 'fired'", ())
    assert large._pages("", whole, {}) > FEW_PAGES
    plan = sqlite.read(_explain, "SELECT count(*) FROM hand WHERE last_outcome = 'fired'", {})
    assert any(_scans(line, {"hand"}) for line in plan)
