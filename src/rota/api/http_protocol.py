"""Requests that never reach a route, because their head is not valid HTTP, too large or too slow.

uvicorn would answer them in plain text, and would keep a head in memory, and its connection open, forever.
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rota.api.joined_writes import JoinedWrites
from rota.api.problem import HEADERS, Problem
from rota.api.services import Services

MOST_HEAD = 64 * 1024
"""Bytes of the request line and the headers. `guard` refuses smaller ones, too, with a better answer."""
SLOWEST_HEAD_S = 30.0
ALLOWED = "DELETE, GET, HEAD, PATCH, POST, PUT"
"""For a method that the parser does not know: it stops before the path, so these are the methods of all routes."""


def protocol_of(services: Services) -> type[HttpToolsProtocol]:
    """The class of connections for `uvicorn.Config(http=…)`, which makes them itself."""
    return type("Protocol", (Protocol,), {"services": services})


class Protocol(HttpToolsProtocol):
    """A connection of a client."""

    services: Services

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes, self._is_in_head = 0, False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        was_in_head = self._is_in_head
        super().data_received(data)
        if self._is_in_head and not self.transport.is_closing():
            self._head_bytes += len(data) if was_in_head else 0
            if self._head_bytes > MOST_HEAD:
                self._refuse(Problem("headers_too_large", f"the headers are larger than {MOST_HEAD:,} bytes"))
            elif self._deadline is None:
                self._expect_head()

    def on_message_begin(self) -> None:
        self._head_bytes, self._is_in_head = 0, True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._end_deadline()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """uvicorn calls this where the parser raises an error."""
        if isinstance(sys.exc_info()[1], httptools.HttpParserInvalidMethodError):
            words = f"this is no method of HTTP; there are {ALLOWED}"
            self._refuse(Problem("method_not_allowed", words, headers={"Allow": ALLOWED}))
        else:
            self._refuse(Problem("bad_header", "the request is not valid HTTP/1.1"))

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(SLOWEST_HEAD_S, self._too_slow)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        if self._is_in_head:
            words = f"the headers have not come within {SLOWEST_HEAD_S:g} s"
            self._refuse(Problem("too_slow", words))
        else:
            self.transport.close()

    def _refuse(self, problem: Problem) -> None:
        id = self.services.request_id()
        content = problem.body(id)
        headers = {
            **HEADERS,
            **problem.headers,
            "X-Request-Id": id,
            "Content-Type": "application/problem+json",
            "Content-Length": str(len(content)),
            "Connection": "close",
        }
        lines = [f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}"]
        lines += [f"{name.lower()}: {value}" for name, value in headers.items()]
        self.transport.write("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
        self.transport.close()
