"""Connections that cannot be joined are refused with a clear error, before anything is written."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
import sqlalchemy

from rota import App, DefinitionError, StoreMismatch, StoreUnavailable
from rota.testing import harness
from tests.support import postgres
from tests.support.databases import fresh_database
from tests.transaction.callers import django_connection
from tests.transaction.shop import Shop, send


def test_autocommit_without_a_transaction_is_refused(shop: Shop) -> None:
    with psycopg.connect(shop.url, autocommit=True) as connection:
        with pytest.raises(DefinitionError, match="autocommit mode and in no transaction"):
            shop.send.within(connection).enqueue("a")
        with connection.transaction():
            shop.send.within(connection).enqueue("a")
        with pytest.raises(DefinitionError, match="autocommit mode and in no transaction"):
            shop.send.within(connection).enqueue("a")
    assert shop.count() == 1


def test_autocommit_of_sqlalchemy_is_refused(shop: Shop) -> None:
    engine = sqlalchemy.create_engine(shop.url.replace("postgresql", "postgresql+psycopg", 1))
    refused = pytest.raises(DefinitionError, match="autocommit mode and in no transaction")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection, refused:
        shop.send.within(connection).enqueue("a")
    engine.dispose()


def test_autocommit_of_django_is_refused(shop: Shop) -> None:
    connection = django_connection(shop.url)
    with pytest.raises(DefinitionError, match="autocommit mode and in no transaction"):
        shop.send.within(connection).enqueue("a")
    connection.close()


def test_a_failed_transaction_is_refused(shop: Shop) -> None:
    with psycopg.connect(shop.url) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(DefinitionError, match="has failed already"):
            shop.send.within(connection).enqueue("a")
        connection.rollback()
        shop.send.within(connection).enqueue("a")
    assert shop.count() == 1


def test_another_database_with_rota_is_refused(shop: Shop) -> None:
    with psycopg.connect(fresh_database()) as connection:
        with pytest.raises(StoreMismatch, match=r"is to the database 'test_.*; the app is on postgresql://"):
            shop.send.within(connection).enqueue("a")
        assert connection.execute("SELECT count(*) FROM rota.execution").fetchone() == (0,)


def test_a_database_without_rota_is_refused(shop: Shop) -> None:
    with psycopg.connect(postgres.shared().create_database()) as connection:
        connection.execute("CREATE TABLE mine (a int)")
        with pytest.raises(StoreMismatch, match="has no schema 'rota' of Rota"):
            shop.send.within(connection).enqueue("a")
        assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)


def test_a_role_without_rights_is_refused(shop: Shop) -> None:
    server = postgres.shared()
    role = f"guest_{shop.url.rpartition('_')[2]}"
    server.execute(f"CREATE ROLE {role} LOGIN")
    with psycopg.connect(server.url(shop.url.rpartition("/")[2], role)) as connection:
        with pytest.raises(StoreUnavailable, match=f"{role} may not enqueue in the database .*: GRANT it USAGE"):
            shop.send.within(connection).enqueue("a")
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("table", ["ready", "scheduled", "expiry", "unique_key", "lane", "queue"])
def test_a_role_that_may_write_only_some_tables_is_refused(shop: Shop, table: str) -> None:
    server = postgres.shared()
    role = f"part_{table}_{shop.url.rpartition('_')[2]}"
    server.execute(f"CREATE ROLE {role} LOGIN")
    shop.query(f"GRANT USAGE ON SCHEMA rota TO {role}")
    shop.query(f"GRANT ALL ON ALL TABLES IN SCHEMA rota TO {role}")
    shop.query(f"REVOKE INSERT ON rota.{table} FROM {role}")
    with psycopg.connect(server.url(shop.url.rpartition("/")[2], role)) as connection:
        with pytest.raises(StoreUnavailable, match=rf"{role} may not enqueue .*\. It lacks INSERT on {table}$"):
            shop.send.within(connection).enqueue("a")
        assert connection.execute("SELECT 1").fetchone() == (1,), "the transaction can be used"
        shop.query(f"GRANT INSERT ON rota.{table} TO {role}")
        shop.send.within(connection).enqueue("a")
    assert shop.count() == 1


def test_pipeline_mode_is_refused(shop: Shop) -> None:
    with psycopg.connect(shop.url) as connection:
        with connection.pipeline(), pytest.raises(DefinitionError, match="is in pipeline mode"):
            shop.send.within(connection).enqueue("a")
        shop.send.within(connection).enqueue("a")
    assert shop.count() == 1


async def test_pipeline_mode_of_async_connections_is_refused(shop: Shop) -> None:
    async with await psycopg.AsyncConnection.connect(shop.url) as connection:
        async with connection.pipeline():
            with pytest.raises(DefinitionError, match="is in pipeline mode"):
                await shop.send.within(connection).aenqueue("a")
        await shop.send.within(connection).aenqueue("a")
    assert shop.count() == 1


def test_an_object_that_is_no_connection_is_refused(shop: Shop) -> None:
    engine = sqlalchemy.create_engine(shop.url.replace("postgresql", "postgresql+psycopg", 1))
    for thing in (object(), "default", None, engine):
        with pytest.raises(DefinitionError, match="is not a connection that Rota can work on"):
            shop.send.within(thing).enqueue("a")
    engine.dispose()


def test_another_database_system_is_refused(shop: Shop) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(DefinitionError, match=r"connected by sqlite\+pysqlite"):
        shop.send.within(connection).enqueue("a")
    engine.dispose()


def test_an_app_on_sqlite_is_refused(shop: Shop, tmp_path: Path) -> None:
    app = App("shop", url=f"sqlite:///{tmp_path}/rota.db")
    job = app.job(send)
    with psycopg.connect(shop.url) as connection, pytest.raises(DefinitionError, match="only PostgreSQL can"):
        job.within(connection).enqueue("a")
    app.close()


def test_the_harness_refuses_within(shop: Shop) -> None:
    refused = pytest.raises(DefinitionError, match="the test harness has none")
    with harness(shop.app), psycopg.connect(shop.url) as connection, refused:
        shop.send.within(connection).enqueue("a")


def test_arguments_are_checked_before_the_transaction_is_touched(shop: Shop) -> None:
    with psycopg.connect(shop.url) as connection:
        with pytest.raises(ValueError, match="argument 'to': expected `str`, got `int`"):
            shop.send.within(connection).enqueue(42)
        assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


def test_the_first_use_of_an_app_registers_it_before_it_enqueues(url: str, shop: Shop) -> None:
    app = App("fresh", url=url)
    job = app.job(send)
    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1")
        job.within(connection).enqueue("a")
        connection.rollback()
    assert shop.query("SELECT count(*) FROM rota.job WHERE app = 'fresh'") == [(1,)]
    app.close()
