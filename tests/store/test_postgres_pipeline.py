"""Statements without a result are sent to PostgreSQL together with the next one that has a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from rota import ids
from rota.clock import SystemClock
from rota.domain.errors import StoreError
from rota.store.port import Row, Tx, View
from rota.store.postgres.session import PostgresSession
from rota.store.postgres.store import PostgresStore
from tests.support.databases import fresh_database


@pytest.fixture
def url() -> str:
    return fresh_database()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url, busy_s=5.0)
    yield store
    store.close()


@pytest.fixture
def run() -> str:
    return ids.first_at(SystemClock().now())


def add(tx: Tx, run: str, number: int) -> None:
    tx.run("add_steps", rows=[(run, number, 0, run)])


def steps(view: View, run: str) -> list[Row]:
    return view.rows("steps_of", run=run, numbers=[0, 1, 2])


def test_a_read_sees_the_statements_before_it(store: PostgresStore, run: str) -> None:
    def operation(tx: Tx) -> list[Row]:
        add(tx, run, 0)
        add(tx, run, 1)
        return steps(tx, run)

    assert store.transact(operation) == [(0, 0, run), (1, 0, run)]


def test_statements_that_are_larger_than_the_buffers_of_the_socket_are_sent(store: PostgresStore, run: str) -> None:
    def operation(tx: Tx) -> list[Row]:
        for number in (0, 1):
            tx.run("add_steps", rows=[(run, number, item, run) for item in range(50_000)])
        return tx.rows("steps_of", run=run, numbers=[0, 1])

    assert len(store.transact(operation)) == 100_000


def test_statements_at_the_end_of_an_operation_are_sent(store: PostgresStore, run: str) -> None:
    store.transact(add, run, 0)
    assert store.read(steps, run) == [(0, 0, run)]


@pytest.mark.parametrize("follows", [steps, lambda tx, run: None], ids=["a read", "the end"])
def test_an_error_is_raised_by_whatever_follows_and_undoes_everything(
    store: PostgresStore, run: str, follows: Callable[[Tx, str], object]
) -> None:
    def operation(tx: Tx) -> None:
        for number in (0, 1, 1, 2):
            add(tx, run, number)
        follows(tx, run)

    with pytest.raises(StoreError, match="duplicate key"):
        store.transact(operation)
    assert store.read(steps, run) == []
    store.transact(add, run, 2)
    assert store.read(steps, run) == [(2, 0, run)]


def test_statements_of_an_operation_that_raised_are_not_sent_later(store: PostgresStore, run: str) -> None:
    def operation(tx: Tx) -> None:
        add(tx, run, 0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.transact(operation)
    store.transact(add, run, 1)
    assert store.read(steps, run) == [(1, 0, run)]


def test_an_operation_is_repeated_if_the_connection_breaks_before_its_statements_are_sent(
    store: PostgresStore, url: str, run: str
) -> None:
    tries = 0

    def operation(tx: Tx) -> list[Row]:
        nonlocal tries
        tries += 1
        add(tx, run, 0)
        if tries == 1:
            assert isinstance(tx, PostgresSession)
            with psycopg.connect(url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [tx._pgconn.backend_pid])
        return steps(tx, run)

    assert store.transact(operation) == [(0, 0, run)]
    assert tries == 2
