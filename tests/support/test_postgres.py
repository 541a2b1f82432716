"""The servers of the tests do what the tests of Rota rely on."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.pgbouncer import PgBouncer
from tests.support.postgres import PostgresServer, missing, shared
from tests.support.waiting import eventually

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One that may be stopped."""
    if reason := missing():
        pytest.skip(reason)
    with PostgresServer(durable=True, settings={"max_connections": 20}) as server:
        yield server


def name(url: str) -> str:
    return url.rpartition("/")[2]


def test_databases_are_new_and_dropped_with_their_connections() -> None:
    with shared().database() as one, shared().database() as other:
        assert one != other
        with psycopg.connect(one) as connection:
            connection.execute("CREATE TABLE item (n int)")
            connection.commit()
            shared().drop_database(one)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            psycopg.connect(one)


def test_a_database_can_be_a_copy() -> None:
    with shared().database() as original:
        shared().execute("CREATE TABLE item AS SELECT 1 AS n", database=name(original))
        copy = shared().create_database(template=name(original))
        assert shared().execute("SELECT n FROM item", database=name(copy)) == [(1,)]
        shared().drop_database(copy)


def test_tests_have_only_the_rights_of_an_owner() -> None:
    with shared().database() as url, psycopg.connect(url) as connection:
        assert connection.execute("SHOW is_superuser").fetchone() == ("off",)
        connection.execute("CREATE SCHEMA anything")


def test_the_server_has_the_chosen_settings(server: PostgresServer) -> None:
    assert server.execute("SHOW max_connections") == [("20",)]
    assert server.execute("SHOW fsync") == [("on",)]
    assert shared().execute("SHOW fsync") == [("off",)]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restarted_server_has_all_commits(server: PostgresServer, mode: str) -> None:
    with server.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE item AS SELECT 1 AS n")
            server.stop("immediate" if mode == "immediate" else "fast")
            assert not server.is_running
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        server.start()
        assert server.is_running
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT n FROM item").fetchone() == (1,)


def test_backends_are_terminated(server: PostgresServer) -> None:
    one, other = server.create_database(), server.create_database()
    with psycopg.connect(one) as cut, psycopg.connect(other) as spared:
        assert server.terminate_backends(name(one)) == 1
        with pytest.raises(psycopg.OperationalError):
            cut.execute("SELECT 1")
        spared.execute("SELECT 1")


def test_a_standby_follows_and_is_promoted(server: PostgresServer) -> None:
    with server.database() as url, server.standby() as standby:
        server.execute("CREATE TABLE item AS SELECT 1 AS n", database=name(url))
        server.wait_for_standby()
        assert standby.is_standby
        assert standby.execute("SELECT n FROM item", database=name(url)) == [(1,)]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            standby.execute("INSERT INTO item VALUES (2)", database=name(url))
        standby.promote()
        standby.execute("INSERT INTO item VALUES (2)", database=name(url))
        assert server.execute("SELECT n FROM item", database=name(url)) == [(1,)]


def test_a_server_does_not_outlive_a_killed_run() -> None:
    """The run prints where its server is, and is killed; then the server goes, and so does its folder."""
    code = (
        "from tests.support.postgres import PostgresServer\n"
        "server = PostgresServer()\n"
        "print(server.url('postgres'), server.sockets, flush=True)\n"
        "input()\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        url, sockets = run.stdout.readline().split()
        psycopg.connect(url).close()
        run.send_signal(signal.SIGKILL)
    eventually(lambda: not Path(sockets).parent.exists(), what="the end of the folder")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


# --- PgBouncer ------------------------------------------------------------------------------------


@pytest.fixture
def bouncer() -> Iterator[PgBouncer]:
    with PgBouncer(shared(), pool_size=2) as bouncer:
        yield bouncer


def test_a_pooler_shares_connections_between_transactions(bouncer: PgBouncer) -> None:
    with shared().database() as url, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(psycopg.connect(bouncer.through(url))) for _ in range(10)]
        backends = set()
        for client in clients:
            backends.add(client.execute("SELECT pg_backend_pid()").fetchone())
            client.commit()
        assert len(backends) <= 2
        pools = {pool["database"]: pool["pool_mode"] for pool in bouncer.show("POOLS")}
        assert pools[name(url)] == "transaction"


def test_a_pooler_can_be_restarted(bouncer: PgBouncer) -> None:
    with shared().database() as url:
        for end in (bouncer.stop, bouncer.kill):
            with psycopg.connect(bouncer.through(url)) as client:
                client.execute("SELECT 1")
                end()
                assert not bouncer.is_running
                with pytest.raises(psycopg.OperationalError):
                    client.execute("SELECT 1")
            bouncer.start()
        psycopg.connect(bouncer.through(url)).close()
