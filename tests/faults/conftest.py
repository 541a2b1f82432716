"""Servers for the faults: one for each test that stops it, the shared one for the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import postgres
from tests.support.postgres import PostgresServer
from tests.support.proxy import Proxy


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A durable server that belongs to one test, which may stop it."""
    if reason := postgres.missing():
        pytest.skip(reason)
    # Recovery begins by flushing every file of the cluster, which may take longer here than the whole fault.
    with PostgresServer(durable=True, settings={"recovery_init_sync_method": "syncfs"}) as server:
        yield server


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
