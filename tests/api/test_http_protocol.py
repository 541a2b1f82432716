"""Requests whose head is refused before any route: methods, sizes and speed, sent as bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from rota.api import http_protocol
from rota.api.http_protocol import protocol_of
from tests.api.server import Server, code
from tests.support.databases import fresh_file

Ask = Callable[..., Coroutine[None, None, httpx.Response | None]]
HEAD = b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """One database is enough: none of these requests reaches it."""
    return fresh_file(tmp_path)


@pytest.fixture
async def ask(server: Server) -> AsyncIterator[Ask]:
    """Sends bytes, one piece after another, and returns the answer; None if the connection closes without one."""
    about = uvicorn.Config(server.api, http=protocol_of(server.services), lifespan="off", log_config=None)
    about.load()
    made = {"config": about, "server_state": ServerState(), "app_state": {}}
    listening = await asyncio.get_running_loop().create_server(
        lambda: about.http_protocol_class(**made),
        "127.0.0.1",
        0,
    )
    port = listening.sockets[0].getsockname()[1]

    async def ask(*pieces: bytes, pause_s: float = 0.0) -> httpx.Response | None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(20):
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(pause_s)  # sleep: a slow client
                return _parsed(await reader.read())
        except ConnectionError:
            return None
        finally:
            writer.close()

    yield ask
    listening.close()


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND", "OPTIONS", "QUERY", "DELETE"])
async def test_methods_without_a_route(ask: Ask, method: str) -> None:
    answer = await ask(HEAD.replace(b"GET", method.encode()) + b"\r\n")
    assert answer is not None
    assert (answer.status_code, code(answer), answer.headers["allow"]) == (405, "method_not_allowed", "GET, HEAD")


@pytest.mark.parametrize("method", ["FOO", "get", "G"])
async def test_methods_that_the_parser_does_not_know(ask: Ask, method: str) -> None:
    answer = await ask(HEAD.replace(b"GET", method.encode()) + b"\r\n")
    assert answer is not None
    assert (answer.status_code, code(answer)) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PATCH, POST, PUT"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "head", [b"GET / FOO/9\r\n\r\n", HEAD + b"Content-Length: x\r\n\r\n", HEAD + b"a b: c\r\n\r\n"]
)
async def test_heads_that_are_not_http(ask: Ask, head: bytes) -> None:
    answer = await ask(head)
    assert answer is not None
    assert (answer.status_code, code(answer)) == (400, "bad_header")


@pytest.mark.parametrize(
    "path",
    ["/api/v1/../v1/me", "/api/v1/./me", "/api/v1/me/", "//api/v1/me", "/api/v1/%6de", "/api/v1/jobs/%00", "/HEALTH"],
)
async def test_case_6_paths_as_they_are_sent(ask: Ask, path: str) -> None:
    answer = await ask(HEAD.replace(b"/api/v1/me", path.encode()) + b"\r\n")
    assert answer is not None
    assert (answer.status_code, code(answer)) == (404, "not_found")


async def test_a_head_in_pieces_is_accepted(ask: Ask) -> None:
    answer = await ask(*(HEAD[start : start + 7] for start in range(0, len(HEAD), 7)), b"\r\n")
    assert answer is not None
    assert answer.status_code == 200


async def test_a_head_without_end_is_refused(ask: Ask) -> None:
    header = b"X-Long: " + b"x" * 1000 + b"\r\n"
    answer = await ask(HEAD, *[header] * 15, b"\r\n")
    assert answer is not None
    assert answer.status_code == 200
    answer = await ask(HEAD, *[header] * 20, b"\r\n")
    assert answer is not None
    assert (answer.status_code, code(answer)) == (431, "headers_too_large")
    for endless in (header, b"x" * 1000):  # Many headers, and one without an end.
        answer = await ask(HEAD, *[endless * 20] * 10, pause_s=0.02)
        assert answer is None or (answer.status_code, code(answer)) == (431, "headers_too_large")


async def test_a_head_that_comes_too_slowly_is_refused(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "SLOWEST_HEAD_S", 0.2)
    answer = await ask(HEAD)
    assert answer is not None
    assert (answer.status_code, code(answer)) == (408, "too_slow")
    assert await ask() is None, "a connection without a request is closed"


def _parsed(answer: bytes) -> httpx.Response | None:
    if not answer:
        return None
    head, _, content = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    return httpx.Response(int(status.split()[1]), headers=headers, content=content)
