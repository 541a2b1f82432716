"""An app on a PostgreSQL database that also has tables of its own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.databases import fresh_database
from tests.transaction.shop import Shop

TABLES = "execution, scheduled, ready, running, finished, dead, unique_key, expiry, worker"


@pytest.fixture(scope="module")
def url() -> str:
    """One database for each module, emptied before each test: a new one takes as long as many tests."""
    url = fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE ledger (entry text NOT NULL, fence integer)")
    return url


@pytest.fixture
def shop(url: str) -> Iterator[Shop]:
    with psycopg.connect(url) as connection:
        for table in TABLES.split(", "):
            connection.execute(f"DELETE FROM rota.{table}".encode())
        connection.execute("DELETE FROM ledger")
        connection.execute("DELETE FROM rota.queue WHERE name IN ('new', 'elsewhere')")
    shop = Shop(url)
    yield shop
    shop.app.close()
