"""The least that a durable POST can be: a Starlette handler that validates a body, and one thread that commits.

`uvicorn benchmarks.bare_handler:app`, with the address of a database of Rota in BARE_URL, in which one execution is
ready. A group of waiting requests is one transaction that inserts copies of that execution into `execution` and
`ready`, with their own ids and arguments. It has no auth, no keys, no quotas, no statistics and no log.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
import psycopg
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rota.clock import MACHINE
from rota.ids import IdSource

MOST = 256
Waiting = tuple[tuple[str, str], asyncio.Future[None]]


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request."""

    job: str
    arguments: dict[str, Any]


class Writes(Protocol):
    def write(self, rows: list[tuple[str, str]]) -> None:
        """Inserts and commits."""


class _Sqlite:
    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA synchronous = FULL")
        self._execution = self._copy("execution", "?2", "arguments")
        self._ready = self._copy("ready")

    def _copy(self, table: str, value: str = "", column: str = "") -> str:
        columns = [row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")]
        others = ", ".join(name for name in columns if name not in ("id", column))
        source = f"FROM {table} WHERE id = (SELECT min(id) FROM ready)"
        into, of = (
            (f"id, {column}, {others}", f"?1, {value}, {others}") if column else (f"id, {others}", f"?1, {others}")
        )
        return f"INSERT INTO {table} ({into}) SELECT {of} {source}"

    def write(self, rows: list[tuple[str, str]]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(self._execution, rows)
        self._connection.executemany(self._ready, [row[:1] for row in rows])
        self._connection.execute("COMMIT")


class _Postgres:
    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("SET search_path TO rota")
        first = self._connection.execute("SELECT id FROM ready LIMIT 1").fetchone()
        assert first is not None, "there must be an execution to copy"
        execution, ready = self._others("execution", "arguments"), self._others("ready")
        self._statement = (
            f"WITH new AS MATERIALIZED (SELECT * FROM unnest(%s::uuid[], %s::text[]) AS u (id, text)), "
            f"known AS (INSERT INTO execution (id, arguments, {execution}) SELECT new.id, new.text, {execution} "
            f"FROM new, (SELECT {execution} FROM execution WHERE id = '{first[0]}') AS old) "
            f"INSERT INTO ready (id, {ready}) SELECT new.id, {ready} "
            f"FROM new, (SELECT {ready} FROM ready WHERE id = '{first[0]}') AS old"
        )

    def _others(self, table: str, *without: str) -> str:
        rows = self._connection.execute(_COLUMNS, (table,)).fetchall()
        return ", ".join(name for (name,) in rows if name not in ("id", *without))

    def write(self, rows: list[tuple[str, str]]) -> None:
        self._connection.execute(self._statement, ([row[0] for row in rows], [row[1] for row in rows]), prepare=True)


_COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_name = %s AND table_schema = current_schema() AND is_generated = 'NEVER'
"""


class Commits:
    """One thread that commits whatever waits, as one group."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._inbox: queue.SimpleQueue[Waiting] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def commit(self, id: str, text: str) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._serve, args=(self._loop,), daemon=True).start()
        done: asyncio.Future[None] = self._loop.create_future()
        self._inbox.put(((id, text), done))
        await done

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            group = [self._inbox.get()]
            while len(group) < MOST and not self._inbox.empty():
                group.append(self._inbox.get())
            self._writes.write([row for row, _ in group])
            loop.call_soon_threadsafe(_answer, [future for _, future in group])


def _answer(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


def _handler(commits: Commits) -> Callable[[Request], Awaitable[Response]]:
    ids, decode = IdSource(MACHINE), msgspec.json.Decoder(Wanted).decode

    async def enqueue(request: Request) -> Response:
        wanted = decode(await request.body())
        id = ids.new()
        await commits.commit(id, msgspec.json.encode(wanted.arguments).decode())
        body = msgspec.json.encode({"executionId": id, "status": "queued", "job": wanted.job})
        return Response(body, 201, {"Location": f"/api/v1/executions/{id}"}, "application/json")

    return enqueue


def _made(url: str) -> Starlette:
    writes = _Postgres(url) if url.startswith("postgres") else _Sqlite(url.removeprefix("sqlite:///"))
    return Starlette(routes=[Route("/api/v1/executions", _handler(Commits(writes)), methods=["POST"])])


app = _made(os.environ["BARE_URL"]) if "BARE_URL" in os.environ else None
