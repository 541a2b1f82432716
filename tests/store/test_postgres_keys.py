"""Keys on PostgreSQL while another transaction is open, and the locks of a call with many keys."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import psycopg
import pytest

from rota import App
from rota.domain.errors import DefinitionError, StoreUnavailable
from rota.domain.unique import Unique
from rota.ops import enqueue, keys
from rota.ops.submission import Header, Item
from rota.sdk.app import registry_of
from rota.store.postgres.store import PostgresStore
from tests.support.databases import fresh_database
from tests.support.waiting import eventually

COUNT = "SELECT count(*) FROM rota.execution"


@pytest.fixture
def url() -> str:
    return fresh_database()


def shop(url: str) -> App:
    app = App("shop", url=url)

    @app.job
    def send(number: int = 0) -> None: ...

    registry_of(app).connection.store()
    return app


@pytest.fixture
def app(url: str) -> Iterator[App]:
    app = shop(url)
    yield app
    app.close()


def count(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute(COUNT).fetchone()
    assert found is not None
    return int(found[0])


def test_a_key_in_an_open_transaction_blocks_only_callers_with_that_key(app: App, url: str) -> None:
    send = app.jobs["send"]
    with ThreadPoolExecutor(16) as threads, psycopg.connect(url) as open_:
        held = send.options(key="held").within(open_).enqueue(1)
        waiting = [threads.submit(send.options(key="held").enqueue, 1) for _ in range(10)]
        for number in range(200):
            send.options(key=f"free {number}").enqueue(number)
            send.enqueue(number)
        assert not any(one.done() for one in waiting), "no execution has the key yet"
        open_.commit()
        assert {one.result(30).id for one in waiting} == {held.id}
    assert count(url) == 401


def test_the_error_of_a_key_that_stays_locked_names_the_key(url: str) -> None:
    app = shop(url)
    app.close()
    store = PostgresStore(url, busy_s=0.5)
    header = Header(namespace="default", app="shop", job="send", queue="default", key="held")
    with psycopg.connect(url) as open_:
        app.jobs["send"].options(key="held").within(open_).enqueue(1)
        with pytest.raises(StoreUnavailable, match="another open transaction holds a key of this call"):
            store.transact(enqueue.enqueue, header, [Item(registry_of(app).connection.ids.new(), "{}")])
        future = store.submit(enqueue.enqueue, header, [Item(registry_of(app).connection.ids.new(), "{}")])
        with pytest.raises(StoreUnavailable, match="nothing was accepted"):
            future.result(30)
    store.close()
    app.close()


def test_a_store_that_closes_answers_callers_that_wait_for_a_key(app: App, url: str) -> None:
    store = PostgresStore(url)
    header = Header(namespace="default", app="shop", job="send", queue="default", key="held")
    with psycopg.connect(url) as open_:
        app.jobs["send"].options(key="held").within(open_).enqueue(1)
        future = store.submit(enqueue.enqueue, header, [Item(registry_of(app).connection.ids.new(), "{}")])
        eventually(lambda: any(work.tries for work in list(store._inbox._calls)), what="one that was put off")
        store.close()
        with pytest.raises(StoreUnavailable):
            future.result(30)


def test_a_call_with_many_keys_needs_one_lock(app: App, url: str) -> None:
    """A server has room for some thousands."""
    header = Header(namespace="default", app="shop", job="send", queue="default", unique=Unique())
    items = [
        Item(registry_of(app).connection.ids.new(), f'{{"number":{number}}}') for number in range(keys.MOST_LOCKS + 11)
    ]
    locks = b"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"

    def counted(tx: Any, few: list[Item]) -> bytes:
        assert all(accepted.created for accepted in enqueue.enqueue(tx, header, few))
        found: bytes = tx._pgconn.exec_(locks).get_value(0, 0)
        return found

    store = registry_of(app).connection.store()
    assert store.transact(counted, items[:10]) == b"11"
    assert store.transact(counted, items[10:]) == b"1"


def test_a_call_with_many_keys_and_calls_with_few_see_each_other(
    app: App, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MOST_LOCKS", 20)
    send = app.jobs["send"].options(unique=True)
    start = threading.Barrier(8)

    def all_at_once(numbers: range) -> Callable[[], list[str]]:
        def run() -> list[str]:
            start.wait(30)
            return [handle.id for handle in send.enqueue_many(numbers)]

        return run

    with ThreadPoolExecutor(8) as threads:
        calls = [all_at_once(range(100)), all_at_once(range(50, 150))]
        calls += [all_at_once(range(10 * n, 10 * n + 5)) for n in range(6)]
        for future in [threads.submit(call) for call in calls]:
            future.result(60)
    assert count(url) == 150


def test_the_same_key_in_another_schema_is_another_key(url: str, app: App) -> None:
    other = shop(f"{url}{'&' if '?' in url else '?'}schema=other")
    with psycopg.connect(url) as open_:
        app.jobs["send"].options(key="k").within(open_).enqueue(1)
        other.jobs["send"].options(key="k").enqueue(1)
    other.close()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_unique_conflict_does_not_depend_on_earlier_statements(app: App, url: str, level: str) -> None:
    send = app.jobs["send"]
    with psycopg.connect(url) as caller:
        caller.execute(f"SET TRANSACTION ISOLATION LEVEL {level}".encode())
        caller.execute("SELECT 1 FROM rota.execution")
        send.enqueue(1)
        with pytest.raises(DefinitionError, match="use READ COMMITTED, or enqueue after it"):
            send.options(unique=Unique(key="u")).within(caller).enqueue(1)
        send.options(key="k").within(caller).enqueue(1)
    assert count(url) == 2


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("says", ["python", "sql"])
def test_a_key_that_was_taken_after_the_snapshot_is_a_serialization_failure(
    app: App, url: str, level: str, says: str
) -> None:
    send = app.jobs["send"].options(key="k")
    with psycopg.connect(url) as caller:
        caller.execute(f"SET TRANSACTION ISOLATION LEVEL {level}".encode())
        caller.execute("SELECT 1 FROM rota.execution")
        send.enqueue(1)
        in_sql = """SELECT rota.enqueue('send', '{"number": 1}', key => 'k')"""
        call = partial(send.within(caller).enqueue, 1) if says == "python" else partial(caller.execute, in_sql)
        with pytest.raises(psycopg.errors.SerializationFailure):
            call()
        caller.rollback()
    assert count(url) == 1


def test_python_and_sql_wait_for_the_same_key(app: App, url: str) -> None:
    send = app.jobs["send"].options(key="k")
    with ThreadPoolExecutor(1) as threads, psycopg.connect(url) as open_:
        row = open_.execute("""SELECT rota.enqueue('send', '{"number": 1}', key => 'k')""").fetchone()
        waiting = threads.submit(send.enqueue, 1)
        store = cast("PostgresStore", registry_of(app).connection.store())
        eventually(lambda: any(work.tries for work in list(store._inbox._calls)), what="one that was put off")
        assert not waiting.done()
        open_.commit()
        assert row is not None
        assert waiting.result(30).id == str(row[0])


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("one list of texts", "tags => '{{a,b},{c,d}}'"),
        ("in the years 1 to 9999", "run_at => '294000-01-01'"),
        ("in the years 1 to 9999", "start_by => '4000-01-01 BC'"),
        ("1 to 512 printable characters", "key => E'a\\u200Bb'"),
        ("1 to 512 printable characters", "key => E'a\\u00A0b'"),
        ("a tag must be", "tags => ARRAY[E'a\\u2028b']"),
    ],
)
def test_unprintable_text_is_refused_in_sql(app: App, url: str, words: str, options: str) -> None:
    with psycopg.connect(url) as connection, pytest.raises(psycopg.Error, match=words):
        connection.execute(f"SELECT rota.enqueue('send', '{{}}', {options})".encode())
    assert count(url) == 0


@pytest.mark.parametrize("number", ["1e5000", "-1e400", '{"deep": [1e309]}'])
def test_numbers_beyond_double_precision_are_refused_in_sql(app: App, url: str, number: Any) -> None:
    with psycopg.connect(url) as connection, pytest.raises(psycopg.Error, match="is too large"):
        connection.execute("SELECT rota.enqueue('send', %s::text::jsonb)", (f'{{"number": {number}}}',))
    assert count(url) == 0


def test_a_role_that_is_serializable_by_default_changes_nothing(app: App, url: str) -> None:
    database = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{database}" SET default_transaction_isolation = serializable'.encode())
    store = PostgresStore(url)
    try:
        level = "SELECT current_setting('transaction_isolation')"
        seen = [store.transact(lambda tx: tx._pgconn.exec_(level.encode()).get_value(0, 0))]  # type: ignore[attr-defined]
        assert seen == [b"read committed"]
    finally:
        store.close()
