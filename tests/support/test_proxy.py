"""The proxy loses, holds back and breaks what a test asks for, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import OperationalError

from tests.support.postgres import shared
from tests.support.proxy import Proxy
from tests.support.waiting import eventually

Commit = Callable[[psycopg.Connection], object]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with shared().database() as url, psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE item (n int)")
        connection.commit()
        yield url


@pytest.fixture(autouse=True)
def empty_table(database: str) -> None:
    shared().execute("TRUNCATE item", database=database.rpartition("/")[2])


@pytest.fixture
def proxy(empty_table: None) -> Iterator[Proxy]:
    with Proxy(shared().port) as proxy:
        yield proxy
        proxy.cut()


@pytest.fixture
def client(proxy: Proxy, database: str) -> Iterator[psycopg.Connection]:
    with contextlib.closing(connect(proxy, database)) as connection:
        yield connection


def connect(proxy: Proxy, database: str, timeout_s: int = 30) -> psycopg.Connection:
    """The caller commits by hand, so that a test sees which of its statements fails."""
    return psycopg.connect(proxy.through(database), autocommit=True, connect_timeout=timeout_s)


def insert(connection: psycopg.Connection, n: int, commit: Commit | None = None) -> None:
    connection.execute("BEGIN")
    connection.execute("INSERT INTO item VALUES (%s)", [n])
    (commit or COMMITS["simple"])(connection)


def items(database: str) -> list[int]:
    name = database.rpartition("/")[2]
    return [n for (n,) in shared().execute("SELECT n FROM item ORDER BY n", database=name)]


def pipelined(connection: psycopg.Connection) -> None:
    with connection.pipeline():
        connection.execute("COMMIT")


def prepared(connection: psycopg.Connection) -> None:
    connection.execute("COMMIT", prepare=True)


COMMITS: dict[str, Commit] = {
    "simple": lambda connection: connection.execute("COMMIT"),
    "extended": lambda connection: connection.execute("COMMIT", binary=True),
    "prepared": prepared,
    "pipelined": pipelined,
    "end": lambda connection: connection.execute("END TRANSACTION"),
    "several": lambda connection: connection.execute("SELECT 1; commit"),
}


@pytest.mark.parametrize("commit", COMMITS.values(), ids=COMMITS)
def test_a_commit_whose_answer_is_dropped_is_committed(
    proxy: Proxy, client: psycopg.Connection, database: str, commit: Commit
) -> None:
    proxy.drop_commits("after", count=1)
    with pytest.raises(OperationalError):
        insert(client, 1, commit)
    assert items(database) == [1]
    assert (proxy.counts.commits, proxy.counts.dropped_after, proxy.counts.dropped_before) == (1, 1, 0)


@pytest.mark.parametrize("commit", COMMITS.values(), ids=COMMITS)
def test_a_commit_that_is_dropped_before_the_server_is_not_committed(
    proxy: Proxy, client: psycopg.Connection, database: str, commit: Commit
) -> None:
    proxy.drop_commits("before", count=1)
    with pytest.raises(OperationalError):
        insert(client, 1, commit)
    eventually(lambda: not open_transactions(database), what="the rollback")
    assert items(database) == []
    assert (proxy.counts.commits, proxy.counts.dropped_after, proxy.counts.dropped_before) == (0, 0, 1)


def open_transactions(database: str) -> int:
    found = shared().execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND state LIKE 'idle in transaction%%'",
        [database.rpartition("/")[2]],
    )
    return int(found[0][0])


def test_a_prepared_commit_is_recognised_each_time(proxy: Proxy, client: psycopg.Connection, database: str) -> None:
    for n in range(3):
        insert(client, n, prepared)
    proxy.drop_commits("before", count=1)
    with pytest.raises(OperationalError):
        insert(client, 3, prepared)
    assert items(database) == [0, 1, 2]
    assert proxy.counts.commits == 3


def test_only_the_chosen_commits_are_dropped(proxy: Proxy, database: str) -> None:
    proxy.drop_commits("after", count=2, skip=1)
    heard = []
    for n in range(5):
        with connect(proxy, database) as connection:
            try:
                insert(connection, n)
                heard.append(n)
            except OperationalError:
                pass
    assert heard == [0, 3, 4]
    assert items(database) == [0, 1, 2, 3, 4]


def test_the_seed_decides_which_commits_are_dropped(database: str) -> None:
    def heard(seed: int) -> list[int]:
        answers = []
        with Proxy(shared().port, seed=seed) as proxy:
            proxy.drop_commits("before", probability=0.5)
            for n in range(20):
                with connect(proxy, database) as connection:
                    try:
                        insert(connection, n)
                        answers.append(n)
                    except OperationalError:
                        pass
        return answers

    first = heard(1)
    assert 0 < len(first) < 20
    assert heard(1) == first
    assert heard(2) != first


def test_a_commit_that_failed_is_no_commit(proxy: Proxy, client: psycopg.Connection) -> None:
    proxy.drop_commits("after", count=1)
    client.execute("BEGIN")
    with pytest.raises(psycopg.errors.DivisionByZero):
        client.execute("SELECT 1 / 0")
    assert client.execute("COMMIT").statusmessage == "ROLLBACK"
    assert proxy.counts.commits == 0


def test_a_black_hole_delivers_nothing_until_it_heals(proxy: Proxy, client: psycopg.Connection, database: str) -> None:
    proxy.black_hole()
    with pytest.raises(psycopg.errors.ConnectionTimeout):
        connect(proxy, database, timeout_s=2)
    client.pgconn.send_query(b"INSERT INTO item VALUES (4711)")
    client.pgconn.flush()
    client.close()
    assert 4711 not in items(database)
    proxy.heal()
    eventually(lambda: 4711 in items(database), what="the statement that was held back")


def test_a_black_hole_can_be_in_one_direction(proxy: Proxy, client: psycopg.Connection, database: str) -> None:
    proxy.black_hole("to_client")
    client.pgconn.send_query(b"INSERT INTO item VALUES (1)")
    client.pgconn.flush()
    eventually(lambda: items(database) == [1], what="the statement, of which the client hears nothing")
    client.pgconn.consume_input()
    assert client.pgconn.is_busy()
    proxy.cut()
    with pytest.raises(OperationalError, match="closed"):
        eventually(client.pgconn.consume_input, what="the end of the connection")


def test_refusing_connections_does_not_affect_open_ones(
    proxy: Proxy, client: psycopg.Connection, database: str
) -> None:
    proxy.refuse()
    with pytest.raises(OperationalError, match="refused"):
        connect(proxy, database)
    client.execute("SELECT 1")
    proxy.heal()
    connect(proxy, database).close()


def test_a_server_that_is_down_comes_back(proxy: Proxy, client: psycopg.Connection, database: str) -> None:
    proxy.down()
    with pytest.raises(OperationalError):
        client.execute("SELECT 1")
    with pytest.raises(OperationalError, match="refused"):
        connect(proxy, database)
    assert (proxy.counts.cut, proxy.counts.outages, proxy.connections) == (1, 1, 0)
    proxy.heal()
    connect(proxy, database).close()


def test_a_slow_connection_still_works(proxy: Proxy, client: psycopg.Connection) -> None:
    proxy.slow(ms_per_byte=1)
    assert client.execute("SELECT 'slowly'").fetchone() == ("slowly",)


def test_a_flapping_connection_breaks_again_and_again(proxy: Proxy, database: str) -> None:
    def runs() -> bool:
        try:
            with connect(proxy, database) as connection:
                insert(connection, 1)
                return True
        except OperationalError:
            return False

    proxy.flap(up_s=0.05, down_s=0.05)
    eventually(lambda: runs() and proxy.counts.outages >= 3, what="several outages")
    proxy.heal()
    assert runs()


def test_large_answers_and_requests_pass_unchanged(client: psycopg.Connection) -> None:
    text = "x" * 3_000_000
    assert client.execute("SELECT %s::text", [text]).fetchone() == (text,)
    assert client.execute("SELECT sum(n) FROM generate_series(1, 50000) n").fetchone() == (1250025000,)
    assert len(client.execute("SELECT n FROM generate_series(1, 50000) n").fetchall()) == 50000
