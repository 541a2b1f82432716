"""Connections that are not in UTF-8, and callers' sessions in which no prepared statement may stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from rota import ArgumentsError, StoreMismatch, Unique
from rota.executors.context import ResultRefused
from tests.support import postgres
from tests.transaction.callers import alchemy_connection, cursor, older_psycopg, plain
from tests.transaction.shop import Shop, written


def test_a_connection_without_an_encoding_is_supported(shop: Shop) -> None:
    with psycopg.connect(f"{shop.url}?client_encoding=sql_ascii") as connection:
        job = shop.send.options(key="k", unique=Unique(key="k", on_conflict="return")).within(connection)
        handle = job.enqueue("☃")
        assert job.enqueue("☃").id == handle.id
    assert (handle.status(), shop.count()) == ("queued", 1)
    assert shop.query("SELECT arguments FROM rota.execution") == [('{"to":"☃"}',)]


def test_a_database_in_sql_ascii_without_rota_is_refused(shop: Shop) -> None:
    server = postgres.shared()
    name = f"ascii_{shop.url.rpartition('_')[2]}"
    command = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
    server.execute(command.format(sql.Identifier(name)))
    refused = pytest.raises(StoreMismatch, match=f"is to the database '{name}', which has no schema 'rota'")
    with psycopg.connect(server.url(name)) as connection, refused:
        shop.send.within(connection).enqueue("a")


@pytest.mark.parametrize("kind", [plain, older_psycopg, alchemy_connection("psycopg")])
def test_a_character_that_the_encoding_of_the_connection_lacks_is_refused(
    shop: Shop, kind: Callable[[str], Any]
) -> None:
    refused = r"'☃' cannot be written on this connection, whose encoding is (latin-1|iso8859-1)"
    with kind(f"{shop.url}?client_encoding=latin1") as caller:
        for job in (shop.send, shop.send.options(key="k")):
            with pytest.raises(ArgumentsError, match=refused):
                job.within(caller.connection).enqueue("☃")
        shop.send.within(caller.connection).enqueue("é")
        caller.commit()
    assert shop.count() == 1


def test_a_result_with_a_character_that_the_encoding_lacks_is_refused(shop: Shop) -> None:
    ctx = shop.start(shop.send, "a")
    with psycopg.connect(f"{shop.url}?client_encoding=latin1") as connection:
        with pytest.raises(ResultRefused, match="'☃' cannot be written"):
            ctx.complete(connection, "☃")
        assert written(ctx) is None
        ctx.complete(connection, "é")
    assert shop.app.handle(ctx.id).result() == "é"


@pytest.mark.parametrize("kind", [plain, cursor, alchemy_connection("psycopg")])
def test_nothing_is_prepared_in_the_callers_session(shop: Shop, kind: Callable[[str], Any]) -> None:
    with kind(shop.url) as caller:
        for _ in range(8):
            shop.send.within(caller.connection).enqueue("a")
        assert caller.run("SELECT statement FROM pg_prepared_statements") == []
        counts = [caller.run("SELECT count(*) FROM pg_prepared_statements") for _ in range(8)]
        assert counts[-1] == [(1,)], "the caller's own are, as before"


async def test_nothing_is_prepared_in_the_session_of_an_async_caller(shop: Shop) -> None:
    async with await psycopg.AsyncConnection.connect(shop.url) as connection:
        for _ in range(8):
            await shop.send.within(connection).aenqueue("a")
        found = await connection.execute("SELECT statement FROM pg_prepared_statements")
        assert await found.fetchall() == []
