"""Requests to an API in the test's own process, byte for byte; a stream is left after its first piece."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from rota.api.asgi import Api

PATIENCE_S = 30.0


class Answered(msgspec.Struct):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


async def ask(api: Api, method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> Answered:
    """`target` is the path and the query as they are sent."""
    path, _, query = target.partition(b"?")
    scope = {
        "type": "http",
        "method": method,
        "path": path.decode("latin-1"),
        "raw_path": path,
        "query_string": query,
        "headers": headers,
        "scheme": "http",
        "client": ("127.0.0.1", 1),
    }
    found = Answered(0, {}, b"")
    parts = [{"type": "http.request", "body": body, "more_body": False}]
    left = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if parts:
            return parts.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found.status = message["status"]
            found.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
            return
        found.body += message["body"]
        if found.headers.get("content-type") == "text/event-stream":
            left.set()

    async with asyncio.timeout(PATIENCE_S):
        await api(scope, receive, send)
    return found
