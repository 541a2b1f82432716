"""The least that a durable POST can be: an ASGI handler that decodes a body, and one thread that commits what waits.

`uvicorn benchmarks.bare_handler:app`, with the address of the database in BARE_URL. It has no auth, no checks, no keys,
and one table with only its primary key: what Rota's enqueue over HTTP is compared with.
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

from rota.clock import MACHINE
from rota.ids import IdSource

MOST = 256
Waiting = tuple[tuple[str, str], asyncio.Future[None]]


class Writes(Protocol):
    def write(self, rows: list[tuple[str, str]]) -> None:
        """Inserts and commits."""


class _Sqlite:
    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS bare (id TEXT PRIMARY KEY, body TEXT)")

    def write(self, rows: list[tuple[str, str]]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO bare VALUES (?, ?)", rows)
        self._connection.execute("COMMIT")


class _Postgres:
    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("CREATE TABLE IF NOT EXISTS bare (id uuid PRIMARY KEY, body text)")

    def write(self, rows: list[tuple[str, str]]) -> None:
        ids, bodies = [row[0] for row in rows], [row[1] for row in rows]
        self._connection.execute("INSERT INTO bare SELECT * FROM unnest(%s::uuid[], %s::text[])", (ids, bodies))


class Bare:
    """The ASGI application."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._ids = IdSource(MACHINE)
        self._inbox: queue.SimpleQueue[Waiting] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        data, has_more = b"", True
        while has_more:
            message = await receive()
            data, has_more = data + message.get("body", b""), message.get("more_body", False)
        value = msgspec.json.decode(data)
        id = self._ids.new()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._start()
        self._inbox.put(((id, msgspec.json.encode(value["arguments"]).decode()), done))
        await done
        body = msgspec.json.encode({"executionId": id, "status": "queued"})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _start(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            group = [self._inbox.get()]
            while len(group) < MOST and not self._inbox.empty():
                group.append(self._inbox.get())
            self._writes.write([row for row, _ in group])
            assert self._loop is not None
            self._loop.call_soon_threadsafe(_answer, [future for _, future in group])


def _answer(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


def _made() -> Bare:
    url = os.environ.get("BARE_URL", "")
    return Bare(_Postgres(url) if url.startswith("postgres") else _Sqlite(url.removeprefix("sqlite:///") or ":memory:"))


app = _made() if "BARE_URL" in os.environ else None
