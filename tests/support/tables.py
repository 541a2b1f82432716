"""Whole tables of a store, with every column, read without the reader."""

from __future__ import annotations

from typing import Any

from rota.store.port import Store
from rota.store.postgres.session import PostgresSession
from rota.store.sqlite.session import SqliteSession


def table(store: Store, name: str) -> list[dict[str, Any]]:
    return store.transact(_rows, name)


def _rows(tx: Any, name: str) -> list[dict[str, Any]]:
    if isinstance(tx, SqliteSession):
        cursor = tx._connection.execute(f"SELECT * FROM {name}")
        return [dict(zip([column[0] for column in cursor.description], row, strict=True)) for row in cursor]
    assert isinstance(tx, PostgresSession)
    result = tx._pgconn.exec_(f"SELECT * FROM rota.{name}".encode())
    tx._transformer.set_pgresult(result)
    columns = [(result.fname(index) or b"").decode() for index in range(result.nfields)]
    rows: list[tuple[Any, ...]] = tx._transformer.load_rows(0, result.ntuples, tuple)
    return [dict(zip(columns, row, strict=True)) for row in rows]
