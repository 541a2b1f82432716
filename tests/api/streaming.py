"""Streams of server-sent events, read event by event."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from tests.api.server import Server


class Stream:
    """An open stream that is read event by event, straight from the application."""

    def __init__(self, server: Server, path: str, query: str, headers: dict[str, str]) -> None:
        self._sent: asyncio.Queue[Any] = asyncio.Queue()
        self._gone = asyncio.Event()
        self._text = ""
        pairs = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
        pairs += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": pairs,
            "client": ("127.0.0.1", 1),
        }
        self.task = asyncio.create_task(server.api(scope, self._receive, self._sent.put))

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def event(self, name: str = "") -> dict[str, Any]:
        """The next event, or the next of this name."""
        async with asyncio.timeout(30):
            while True:
                while "\n\n" not in self._text:
                    message = await self._sent.get()
                    assert message.get("status", 200) == 200, await self._sent.get()
                    self._text += message.get("body", b"").decode()
                block, _, self._text = self._text.partition("\n\n")
                members = dict(line.split(": ", 1) for line in block.split("\n"))
                if "event" in members and name in ("", members["event"]):
                    return {"name": members["event"], "id": members.get("id"), **json.loads(members["data"])}

    async def close(self) -> None:
        self._gone.set()
        await self.task


@contextlib.asynccontextmanager
async def streaming(
    server: Server, query: str = "", *, path: str = "/api/v1/stream", **headers: str
) -> AsyncIterator[Stream]:
    """`headers` have their names with _ for -."""
    stream = Stream(server, path, query, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        yield stream
    finally:
        await stream.close()
