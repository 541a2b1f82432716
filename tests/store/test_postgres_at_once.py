"""An enqueue as one statement: the same rows as by the long way, and accepted once whatever the connection does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from rota.clock import ManualClock, SystemClock
from rota.domain.errors import ClockSkew, QueueFull, StoreError, UnknownJob
from rota.domain.job import Definition, Queue
from rota.ids import IdSource
from rota.ops import define, enqueue
from rota.ops.enqueue import Header, Item
from rota.store.postgres import PostgresStore
from rota.store.postgres_session import PostgresSession
from tests.support.databases import fresh_database
from tests.support.postgres import shared

COLUMNS = "namespace, app, job, job_version, actor, queue, lane, priority, arguments, key, deadline, parent, tags"
ids = IdSource(SystemClock())


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(fresh_database())
    store.transact(define.register, "default", "shop", [_job("send")], [Queue(name="small", max_depth=1)])
    yield store
    store.close()


def _job(name: str) -> Definition:
    return Definition(
        name=name,
        queue="default",
        priority=0,
        retry={},
        timeout_s=None,
        total_timeout_s=None,
        start_within_s=None,
        parameters={},
        description="",
    )


def _header(**options: Any) -> Header:
    return Header(**{"namespace": "default", "app": "shop", "job": "send", "queue": "default", **options})


def _rows(store: PostgresStore, query: str) -> list[tuple[Any, ...]]:
    return shared().execute(query, database=store._address.conninfo.rsplit("/", 1)[1].split("?")[0])


@pytest.mark.parametrize("options", [{}, {"priority": 7}, {"tags": '["x"]', "actor": "ann"}, {"queue": "default"}])
def test_one_statement_leaves_what_the_long_way_leaves(store: PostgresStore, options: dict[str, Any]) -> None:
    store.transact(enqueue.enqueue, _header(**options), [Item(ids.new(), "{}")])
    # A key makes it go the long way; it is the only column that may differ.
    store.transact(enqueue.enqueue, _header(**options, key="k"), [Item(ids.new(), "{}")])
    short, long = _rows(store, f"SELECT {COLUMNS} FROM rota.execution ORDER BY id")
    assert [a for a, b in zip(short, long, strict=True) if a != b] == [None]
    offsets = _rows(
        store,
        "SELECT r.lane, r.rank - x.run_at, r.fence, x.run_at - x.created_at FROM rota.ready r "
        "JOIN rota.execution x ON x.id = r.id",
    )
    assert len(offsets) == 2
    assert len(set(offsets)) == 1


def test_what_cannot_be_done_at_once_is_done_or_refused_the_long_way(store: PostgresStore) -> None:
    with pytest.raises(UnknownJob):
        store.transact(enqueue.enqueue, _header(job="nothing"), [Item(ids.new(), "{}")])
    store.transact(enqueue.enqueue, _header(queue="new"), [Item(ids.new(), "{}")])
    store.transact(enqueue.enqueue, _header(queue="small"), [Item(ids.new(), "{}")])
    with pytest.raises(QueueFull):
        store.transact(enqueue.enqueue, _header(queue="small"), [Item(ids.new(), "{}")])
    with pytest.raises(ClockSkew):
        store.transact(enqueue.enqueue, _header(), [Item(IdSource(ManualClock()).new(), "{}")])
    assert len(_rows(store, "SELECT id FROM rota.execution")) == 2


def test_an_id_that_is_taken_is_refused(store: PostgresStore) -> None:
    item = Item(ids.new(), "{}")
    store.transact(enqueue.enqueue, _header(), [item])
    with pytest.raises(StoreError):
        store.transact(enqueue.enqueue, _header(), [item])


@pytest.mark.parametrize("is_late", [True, False], ids=["after", "before"])
def test_a_connection_that_breaks_around_the_statement_costs_nothing(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    original: Callable[..., Any] = PostgresSession.rows
    breaks = iter([True])

    def rows(self: PostgresSession, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        if name != "insert_at_once" or not next(breaks, False):
            return original(self, name, **params)  # type: ignore[no-any-return]
        if is_late:
            original(self, name, **params)
        self._pgconn.finish()
        raise psycopg.OperationalError("the connection broke")

    monkeypatch.setattr(PostgresSession, "rows", rows)
    item = Item(ids.new(), "{}")
    (accepted,) = store.transact(enqueue.enqueue, _header(), [item])
    assert (accepted.id, accepted.created) == (item.id, True)
    assert [str(row[0]) for row in _rows(store, "SELECT id FROM rota.execution")] == [item.id]
    assert next(breaks, None) is None
