"""Servers for the faults: a durable one for tests that stop it, the shared one for the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.trial import Trial
from tests.support import postgres
from tests.support.databases import fresh_database
from tests.support.postgres import PostgresServer
from tests.support.proving import proof
from tests.support.proxy import Proxy


@pytest.fixture(scope="session")
def durable_server() -> Iterator[PostgresServer]:
    """Starting a server takes longer than most tests, so the tests of a test process share one, one after the other."""
    if reason := postgres.missing():
        pytest.skip(reason)
    # Recovery begins by flushing every file of the cluster, which may take longer here than the whole fault.
    with PostgresServer(durable=True, settings={"recovery_init_sync_method": "syncfs"}) as server:
        yield server


@pytest.fixture
def server(durable_server: PostgresServer) -> Iterator[PostgresServer]:
    """A durable server that belongs to one test, which may stop it and change its settings."""
    yield durable_server
    if not durable_server.is_running:
        durable_server.start()
    durable_server.execute("ALTER SYSTEM RESET ALL")
    durable_server.execute("SELECT pg_reload_conf()")


@pytest.fixture
def url() -> Iterator[str]:
    """A new database on the server of this process."""
    with postgres.shared().database() as url:
        yield url


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A network between the clients and the server of this process."""
    with Proxy(postgres.shared().port) as proxy:
        yield proxy


on_both = pytest.mark.parametrize("trial", ["sqlite", "postgres"], indirect=True)
"""For faults at a transaction, a lock or a lease of the database."""


@pytest.fixture(params=["sqlite", proof("postgres")])
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trial]:
    """A fault with real processes and three records; on PostgreSQL only in `make prove`, unless it is `on_both`."""
    with Trial(tmp_path, fresh_database() if request.param == "postgres" else "") as trial:
        yield trial
