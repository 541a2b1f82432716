"""`rota doctor` on PostgreSQL, with real culprits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from rota.cli import doctor_checks, doctor_checks_postgres
from rota.cli.database import Database
from rota.cli.doctor_checks import Check, Finding, Verdict
from rota.clock import ManualClock, SystemClock
from rota.ids import IdSource
from rota.store.postgres.link import Link
from rota.store.postgres.store import PostgresStore
from tests.cli.shell import Shell
from tests.support import postgres
from tests.support.databases import fresh_database
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually
from tests.support.world import World


@pytest.fixture
def url() -> str:
    return fresh_database()


@pytest.fixture
def ask() -> Iterator[Callable[[str, Check], list[Finding]]]:
    """Runs one check on a database."""
    opened: list[Database] = []

    def run(url: str, check: Check) -> list[Finding]:
        database = Database(url=url)
        opened.append(database)
        return check(database)

    yield run
    for database in opened:
        database.close()


Ask = Callable[[str, Check], list[Finding]]


def worst(findings: list[Finding]) -> Finding:
    return max(findings, key=lambda one: list(Verdict).index(one.verdict))


def connect(url: str, application: str) -> psycopg.Connection:
    return psycopg.connect(url, application_name=application)


def test_a_sound_server_is_ok(shell: Shell) -> None:
    with PostgresServer(durable=True, settings={"shared_buffers": "128MB"}) as server:
        url = server.create_database()
        PostgresStore(url).close()
        secret = url.replace("rota@", "rota:hunter2@")
        answer = shell("doctor", "--json", "--url", secret)
        found = {row["check"]: row for row in answer.rows}
        names = (
            "settings server write,server settings,connection rights transactions locks bloat partitions schema clock"
        )
        expected = {
            name for part in names.split(",") for name in ([part] if part == "server settings" else part.split())
        }
        above = {"workers", "leases", "versions", "deploys", "attention", "dependencies", "queues"}
        above |= {"dead letters", "retention"}
        assert expected | above == set(found)
        wrong = [row for row in answer.rows if row["verdict"] != "ok" and row["check"] not in ("workers", "write")]
        assert wrong == []
        assert found["server"]["found"].startswith(f"PostgreSQL {server.version}.")
        assert "7 of them ahead" in found["partitions"]["found"]
        assert "hunter2" not in answer.out + answer.err


def test_settings_that_lose_what_was_accepted_fail(url: str, shell: Shell) -> None:
    answer = shell("doctor", "--json", "--url", url)
    assert answer.code == 1
    found = [row for row in answer.rows if row["check"] == "server settings"]
    assert [row["verdict"] for row in found[:3]] == ["fail"] * 3
    assert found[0]["found"].startswith("fsync is off: accepted would not mean durable")
    assert "shared_buffers is only 32 MB" in found[3]["found"]


def test_a_server_that_cannot_be_reached_fails(shell: Shell) -> None:
    answer = shell("doctor", "--json", "--url", "postgresql://rota:hunter2@127.0.0.1:1/none")
    assert answer.code == 1
    assert answer.rows[-1]["check"] == "server"
    assert "cannot be reached" in answer.rows[-1]["found"]
    assert "hunter2" not in answer.out


def test_a_database_without_rota_says_so(shell: Shell) -> None:
    answer = shell("doctor", "--json", "--url", postgres.shared().create_database())
    assert [row["verdict"] for row in answer.rows if row["check"] == "schema"] == ["fail"]


def test_an_idle_transaction_is_named(url: str, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks_postgres, "IDLE_S", 0.0)
    with connect(url, "forgotten report") as culprit:
        culprit.execute("SELECT count(*) FROM rota.ready")
        found = worst(ask(url, doctor_checks_postgres.transactions))
        assert found.verdict is Verdict.WARN
        assert f"pid {culprit.info.backend_pid} (forgotten report, user rota) has done nothing" in found.found
        assert "SELECT count(*) FROM rota.ready" in found.found
        assert f"select pg_terminate_backend({culprit.info.backend_pid})" in found.advice


def test_a_long_transaction_that_holds_back_the_vacuum_is_named(
    url: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks_postgres, "LONG_S", 0.0)
    with connect(url, "nightly export") as culprit, connect(url, "other") as other:
        culprit.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        culprit.execute("SELECT count(*) FROM rota.ready")
        other.execute("SELECT pg_current_xact_id()")
        other.commit()
        work = threading.Thread(target=lambda: culprit.execute("SELECT pg_sleep(3)"))
        work.start()

        def found() -> list[Finding]:
            return [one for one in ask(url, doctor_checks_postgres.transactions) if "nightly export" in one.found]

        (one,) = eventually(lambda: [one for one in found() if "keeps the rows of" in one.found])
        work.join()
        assert "has been in a transaction" in one.found or "has done nothing" in one.found
        assert f"pg_terminate_backend({culprit.info.backend_pid})" in one.advice


def test_who_blocks_whom_is_named(url: str, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks_postgres, "BLOCKED_S", 0.0)
    with connect(url, "bad migration") as culprit, connect(url, "victim") as victim:
        culprit.execute("LOCK TABLE rota.ready IN ACCESS EXCLUSIVE MODE")
        waiting = threading.Thread(target=lambda: victim.execute("SELECT count(*) FROM rota.ready"))
        waiting.start()

        def blocked() -> list[Finding]:
            return [one for one in ask(url, doctor_checks_postgres.locks) if one.verdict is Verdict.WARN]

        try:
            found = eventually(blocked)[0]
        finally:
            culprit.rollback()
            waiting.join()
        assert f"pid {victim.info.backend_pid} (victim) has waited" in found.found
        assert f"of pid {culprit.info.backend_pid} (bad migration, user rota)" in found.found
        assert f"pg_terminate_backend({culprit.info.backend_pid})" in found.advice


def test_dead_rows_are_counted_and_their_holder_is_named(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres.shared().create_database()  # A database that other tests have used has dead rows of theirs.
    PostgresStore(url).close()
    monkeypatch.setattr(doctor_checks_postgres, "MANY_DEAD", 50)
    monkeypatch.setattr(doctor_checks_postgres, "IDLE_S", 0.0)
    with connect(url, "holder") as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT 1 FROM rota.expiry")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE rota.dead SET (autovacuum_enabled = off)")
            connection.execute("INSERT INTO rota.expiry SELECT n, gen_random_uuid() FROM generate_series(1, 500) n")
            connection.execute("DELETE FROM rota.expiry")
            connection.execute("SELECT pg_stat_force_next_flush()")
        found = [one for one in ask(url, doctor_checks_postgres.bloat) if one.verdict is Verdict.WARN]
    assert found[0].found == "autovacuum is switched off for dead"
    assert "expiry has 500 dead rows for 0 live ones" in found[1].found
    assert "(holder, user rota) holds them back" in found[1].advice


def test_missing_days_are_named(ask: Ask) -> None:
    url = postgres.shared().create_database()
    PostgresStore(url, ManualClock(), inline=True).close()
    found = worst(ask(url, doctor_checks_postgres.partitions))
    assert found.verdict is Verdict.WARN
    assert found.found.startswith("days without a partition: ")
    assert "start a worker" in found.advice


def test_a_pooler_without_a_direct_way_is_noticed(ask: Ask, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    with PgBouncer(postgres.shared()) as bouncer:
        pooled = bouncer.url(url.rpartition("/")[2])
        assert worst(ask(pooled, doctor_checks_postgres.pooler)).verdict is Verdict.WARN
        monkeypatch.setenv("ROTA_LISTEN_URL", url)
        assert worst(ask(pooled, doctor_checks_postgres.pooler)).verdict is Verdict.OK
        assert worst(ask(pooled, doctor_checks_postgres.transactions)).verdict is Verdict.OK
        monkeypatch.setenv("ROTA_LISTEN_URL", pooled)
        assert "leads through a pooler" in worst(ask(url, doctor_checks_postgres.pooler)).found


def test_a_way_for_wake_ups_that_leads_nowhere_is_noticed(ask: Ask, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("ROTA_LISTEN_URL", "postgresql://rota:hunter2@127.0.0.1:1/none")
    found = worst(ask(url, doctor_checks_postgres.pooler))
    assert found.verdict is Verdict.WARN
    assert "cannot be reached" in found.found
    assert "hunter2" not in found.found


def test_timeouts_of_the_role_are_noticed(ask: Ask) -> None:
    server = postgres.shared()
    url = fresh_database()
    name = url.rpartition("/")[2]
    for setting in ("statement_timeout", "idle_session_timeout"):
        command = sql.SQL("ALTER DATABASE {} SET {} = '5s'").format(sql.Identifier(name), sql.Identifier(setting))
        server.execute(command)
    found = [one.found for one in ask(url, doctor_checks_postgres.server_settings)]
    assert any(words.startswith("statement_timeout is 5000 ms for this role") for words in found)
    assert any(words.startswith("idle_session_timeout is 5000 ms") for words in found)


def test_the_doctor_names_the_rights_that_a_role_lacks(url: str, ask: Ask) -> None:
    server, name = postgres.shared(), url.rpartition("/")[2]
    with server.connect(name) as connection:
        connection.execute("DROP ROLE IF EXISTS visitor")
        connection.execute("CREATE ROLE visitor LOGIN")
        guest = server.url(name, "visitor")
        found = worst(ask(guest, doctor_checks_postgres.rights))
        assert (found.verdict, "schema rota (USAGE)" in found.found) == (Verdict.FAIL, True)
        connection.execute("GRANT USAGE ON SCHEMA rota TO visitor")
        assert "action (DELETE)" in worst(ask(guest, doctor_checks_postgres.rights)).found
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota TO visitor")
        found = worst(ask(guest, doctor_checks_postgres.rights))
        assert (found.verdict, "does not own the tables" in found.found) == (Verdict.WARN, True)
        connection.execute("DROP OWNED BY visitor")
        connection.execute("DROP ROLE visitor")


def test_a_prepared_transaction_is_named(ask: Ask) -> None:
    with PostgresServer(settings={"max_prepared_transactions": 5}) as server:
        url = server.create_database()
        PostgresStore(url, inline=True).close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'lost one'")
            found = worst(ask(url, doctor_checks_postgres.transactions))
            assert "the prepared transaction lost one keeps" in found.found
            assert found.advice == "rollback prepared 'lost one'"
            connection.execute("ROLLBACK PREPARED 'lost one'")


def test_a_machine_that_enqueues_with_a_wrong_clock_is_named(url: str, ask: Ask) -> None:
    store = PostgresStore(url, inline=True)
    world = World(store, ManualClock())
    ahead = ManualClock(SystemClock().now() + 90_000_000)
    world.ids = IdSource(ahead)
    world.enqueue(actor="cli:ann")
    store.close()
    found = worst(ask(url, doctor_checks.clock))
    assert found.verdict is Verdict.WARN
    assert "executions that cli:ann enqueued lately have ids made by a clock 1 m" in found.found


def test_too_many_days_for_the_locks_of_the_server(ask: Ask, url: str) -> None:
    few = {"max_connections": 12, "max_locks_per_transaction": 10}
    with PostgresServer(settings={**few, "superuser_reserved_connections": 1}) as server:
        crowded = server.create_database()
        store = PostgresStore(crowded, inline=True)
        links = [Link(store._address, "crowd", planner=False) for _ in range(4)]
        found = [one.found for one in ask(crowded, doctor_checks_postgres.server_settings)]
        for link in links:
            link.close()
        store.close()
    assert any("could need more locks than the server has" in words for words in found)


def test_how_the_roles_transactions_begin_is_looked_at(ask: Ask, url: str) -> None:
    server, name = postgres.shared(), url.rpartition("/")[2]
    assert not [one for one in ask(url, doctor_checks_postgres.server_settings) if "default_transaction" in one.found]
    for setting, value in (("isolation", "serializable"), ("read_only", "on")):
        server.execute(f"ALTER DATABASE {name} SET default_transaction_{setting} = '{value}'")
    any_server = f"{url}?target_session_attrs=any"
    found = [
        one for one in ask(any_server, doctor_checks_postgres.server_settings) if "default_transaction" in one.found
    ]
    assert [one.verdict for one in found] == [Verdict.WARN] * 2
    assert found[0].found.startswith("default_transaction_isolation is serializable for this role")
    assert found[0].advice.startswith("alter role rota set default_transaction_isolation = 'read committed'")
    assert found[1].found.startswith("default_transaction_read_only is on for this role")
