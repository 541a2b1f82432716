"""How the statements of one operation travel to PostgreSQL: several in one round trip, with BEGIN and COMMIT."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from rota import ids
from rota.clock import SystemClock
from rota.domain.errors import StoreError
from rota.store.pending_call import PendingCall
from rota.store.port import Row, Tx, View, operation
from rota.store.postgres.session import PostgresSession
from rota.store.postgres.store import PostgresStore
from tests.support.databases import fresh_database
from tests.support.proxy import Proxy, When


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


class RoundTrips:
    """A libpq connection that counts how often the client waits for the server."""

    def __init__(self, pgconn: Any) -> None:
        self._pgconn = pgconn
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        if name in ("exec_", "exec_prepared", "exec_params", "pipeline_sync"):
            self.count += 1
        return getattr(self._pgconn, name)


def round_trips(store: PostgresStore, operation: Callable[[Tx], object]) -> int:
    store.transact(operation)  # Connects, and prepares the statements.
    link, session = store._direct_writer()._open()
    counting, alone = RoundTrips(session._pgconn), []
    say = link._say

    def counted(words: bytes) -> Any:
        alone.append(words)  # A BEGIN or a COMMIT by itself.
        return say(words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "_pgconn", counting)
        patch.setattr(link, "_say", counted)
        store.transact(operation)
    return counting.count + len(alone)


def test_a_transaction_begins_with_its_first_statement_and_commits_with_its_last(
    store: PostgresStore, run: str
) -> None:
    numbers = iter(range(2))

    def operation(tx: Tx) -> None:
        steps(tx, run)
        add(tx, run, next(numbers))

    assert round_trips(store, operation) == 2
    assert store.read(steps, run) == [(0, 0, run), (1, 0, run)]


def test_begin_is_a_round_trip_of_its_own_only_if_the_operation_reads_the_time_first(
    store: PostgresStore, run: str
) -> None:
    times: list[int] = []

    def reads_it_first(tx: Tx) -> None:
        times.append(tx.now)
        steps(tx, run)

    def reads_it_later(tx: Tx) -> None:
        steps(tx, run)
        times.append(tx.now)

    before = SystemClock().now()
    trips = [round_trips(store, operation) for operation in (reads_it_first, reads_it_later)]
    assert trips == [3, 2]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= SystemClock().now()


def test_an_operation_without_a_statement_begins_no_transaction(store: PostgresStore, url: str) -> None:
    link, _ = store._direct_writer()._open()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [link.connection.info.backend_pid])
    assert store.transact(lambda tx: 7) == 7


def test_an_operation_whose_only_statement_is_sent_with_the_commit_is_repeated_on_a_new_connection(
    store: PostgresStore, url: str, run: str
) -> None:
    """The transaction has not begun when the connection breaks, so there is no id to look up."""
    link, _ = store._direct_writer()._open()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [link.connection.info.backend_pid])
    store.transact(add, run, 0)
    assert store.read(steps, run) == [(0, 0, run)]


def test_an_operation_that_catches_the_error_of_its_first_statement_is_refused(store: PostgresStore, run: str) -> None:
    def operation(tx: Tx) -> None:
        with contextlib.suppress(psycopg.Error):
            tx.rows("steps_of", run="not an id", numbers=[0])

    with pytest.raises(StoreError, match="rolled back"):
        store.transact(operation)
    store.transact(add, run, 0)
    assert store.read(steps, run) == [(0, 0, run)]


def test_joined_calls_are_run_one_by_one_if_a_statement_that_is_sent_with_the_commit_fails(
    store: PostgresStore, run: str
) -> None:
    def add_all(tx: Tx, calls: Sequence[tuple[Any, ...]]) -> list[None]:
        for args in calls:
            add(tx, *args)
        return [None] * len(calls)

    @operation(together=add_all)
    def adding(tx: Tx, run: str, number: int) -> None:
        add(tx, run, number)

    calls = [PendingCall(adding, (run, number), {}) for number in (0, 1, 1, 2)]
    store._direct_writer().perform(calls)
    assert [call.error is None for call in calls] == [True, True, False, True]
    assert store.read(steps, run) == [(0, 0, run), (1, 0, run), (2, 0, run)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_that_is_sent_with_statements_may_lose_its_answer(url: str, run: str, when: When) -> None:
    with Proxy(urlsplit(url).port or 5432) as proxy:
        store = PostgresStore(proxy.through(url), busy_s=10.0)
        try:
            store.transact(add, run, 0)
            proxy.drop_commits(when, count=1)
            store.transact(add, run, 1)
            assert store.read(steps, run) == [(0, 0, run), (1, 0, run)]
        finally:
            store.close()
