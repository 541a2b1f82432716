"""Error messages when the server works but another session or a setting blocks the call."""

from __future__ import annotations

import contextlib

import psycopg
import pytest

from rota.clock import SystemClock
from rota.domain.errors import StoreUnavailable
from rota.store import reader
from rota.store.postgres import link as postgres_link
from rota.store.postgres import readonly as postgres_readonly
from rota.store.postgres.errors import Remedy, remedy, translated
from rota.store.postgres.store import PostgresStore
from tests.support import postgres

SHOWN = "postgresql://host/shop"
HOLDER = "an open transaction"
SLOW = f"this is more work than the server can do in the time, or {HOLDER} holds a lock or a key that this needs"


def test_a_lock_timeout_is_not_reported_as_an_unreachable_server() -> None:
    known = translated(psycopg.errors.LockNotAvailable("canceling statement due to lock timeout"), SHOWN)
    assert isinstance(known, StoreUnavailable)
    assert known.may_pass
    assert str(known) == (
        f"{SHOWN} waited too long for a lock (canceling statement due to lock timeout): {HOLDER} holds a lock or a key "
        "that this needs: `rota doctor` names long transactions"
    )


def test_the_error_of_a_statement_timeout_names_all_possible_causes() -> None:
    known = translated(psycopg.errors.QueryCanceled("canceling statement due to statement timeout"), SHOWN)
    assert isinstance(known, StoreUnavailable)
    assert known.may_pass
    assert f"did not finish this (canceling statement due to statement timeout): {SLOW}" in str(known)


@pytest.mark.parametrize("kind", [psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected])
def test_the_error_of_a_conflict_names_the_other_transaction(kind: type[psycopg.Error]) -> None:
    known = translated(kind("deadlock detected"), SHOWN)
    assert isinstance(known, StoreUnavailable)
    assert known.may_pass
    assert "because of a conflict with another transaction" in str(known)
    assert "cannot be reached" not in str(known)


def test_the_error_of_a_closed_connection_says_that_the_server_may_be_up() -> None:
    error = psycopg.OperationalError("consuming input failed: server closed the connection unexpectedly\n\tMore.")
    known = translated(error, SHOWN)
    assert isinstance(known, StoreUnavailable)
    assert known.may_pass
    assert f"gave no answer in time. If it is up, {SLOW}" in str(known)


def test_the_error_of_a_locked_table_names_the_lock(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(postgres_link.SETTINGS, "lock_timeout", "200ms")
    with (
        contextlib.closing(PostgresStore(url, busy_s=1)) as store,
        contextlib.closing(postgres_readonly.PostgresReadOnly(url, SystemClock())) as looking,
        postgres.shared().connect(url.rpartition("/")[2]) as other,
        other.transaction(),
    ):
        other.execute("LOCK TABLE rota.queue IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailable, match=f"lock timeout.*{HOLDER} holds a lock or a key that this needs"):
            looking.read(reader.queues, "default")
        # Its last try may end by the lock's time or by the caller's.
        with pytest.raises(StoreUnavailable, match=f"{HOLDER} holds a lock or a key that this needs"):
            store.read(reader.queues, "default")


def test_the_error_of_a_read_only_database_names_the_setting(url: str) -> None:
    server, name = postgres.shared(), url.rpartition("/")[2]
    server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StoreUnavailable, match=r"cannot be written to .*default_transaction_read_only is on"):
        PostgresStore(url, busy_s=0.1)


def test_a_connect_to_a_server_without_ssl_fails_at_once() -> None:
    error = psycopg.OperationalError("connection failed: server does not support SSL, but SSL was required")
    assert remedy(error) is Remedy.NONE
    assert "server does not support SSL, but SSL was required. Check sslmode" in str(translated(error, SHOWN))
