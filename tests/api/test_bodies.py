"""Bodies that are hostile or broken, sent to a real server as bytes."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from rota.api import body
from rota.domain import strict_json
from tests.api.jobs import FREE, add_jobs
from tests.api.process import ServerProcess, server_process
from tests.api.server import Server, code, serving

JSON = {"Content-Type": "application/json"}
BODY = b'{"job":"free"}'


@pytest.fixture
def process(url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    with serving(url) as server:
        add_jobs(server.store, FREE)
    with server_process(tmp_path, url) as process:
        yield process


def answers(process: ServerProcess, *headers: str, content: bytes, leaves: bool = False) -> list[int]:
    """The statuses of all answers to these bytes, until the server closes the connection."""
    address = httpx.URL(process.url)
    lines = ["POST /api/v1/executions HTTP/1.1", f"Host: {address.netloc.decode()}", "Content-Type: application/json"]
    lines.append("Connection: close")
    with socket.create_connection((address.host, address.port or 0), timeout=5) as line:
        line.sendall("\r\n".join([*lines, *headers, "", ""]).encode() + content)
        if leaves:
            line.shutdown(socket.SHUT_WR)
        found = b""
        while piece := line.recv(65536):
            found += piece
    return [int(part.split(b" ")[1]) for part in found.split(b"HTTP/1.1 ")[1:] for part in [b"x " + part]]


def test_case_25_lengths_that_are_wrong(process: ServerProcess) -> None:
    small = answers(process, "Content-Length: 5", content=BODY)
    assert small[0] == 400, "the JSON is cut off"
    large = answers(process, "Content-Length: 500", content=BODY, leaves=True)
    assert large in ([], [400]), "the client leaves before all of it has come"
    both = answers(
        process, "Content-Length: 14", "Transfer-Encoding: chunked", content=b"e\r\n" + BODY + b"\r\n0\r\n\r\n"
    )
    assert both[:1] == [400]
    twice = answers(process, "Content-Length: 14", "Content-Length: 15", content=BODY)
    assert twice[:1] == [400]
    chunked = answers(process, "Transfer-Encoding: chunked", content=b"e\r\n" + BODY + b"\r\n0\r\n\r\n")
    assert chunked == [201]


async def test_case_25_a_bomb_is_refused_before_it_is_large(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten gigabytes of zeros as gzip: inflating stops at one hundred times the size."""
    add_jobs(server.store, FREE)
    inflated = 0
    hold = server.services.room.held

    def counted() -> object:
        held = hold()
        add = held.add

        def note(count: int) -> None:
            nonlocal inflated
            inflated += count
            add(count)

        held.add = note  # type: ignore[method-assign]
        return held

    monkeypatch.setattr(server.services.room, "held", counted)
    megabytes = gzip.compress(b"\0" * 10_000_000)
    async with server.client() as client:
        answer = await client.post("/executions", content=megabytes, headers=JSON | {"Content-Encoding": "gzip"})
    assert (answer.status_code, code(answer)) == (413, "too_large")
    assert inflated < 2 * 1024 * 1024


async def test_case_25_a_body_that_comes_too_slowly(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    add_jobs(server.store, FREE)
    monkeypatch.setattr(body, "SLOWEST_S", 0.2)

    async def slow() -> AsyncIterator[bytes]:
        for byte in BODY:
            yield bytes([byte])
            await asyncio.sleep(0.05)  # sleep: a slow client

    async with server.client() as client:
        answer = await client.post("/executions", content=slow(), headers=JSON)
    assert (answer.status_code, code(answer)) == (408, "too_slow")


async def test_case_25_sizes(url: str) -> None:
    with serving(url, max_payload_bytes=1024) as server:
        add_jobs(server.store, FREE)
        async with server.client() as client:
            one = b'{"job":"free","arguments":{"x":"%s"}}'
            answer = await client.post("/executions", content=one % (b"x" * 70_000), headers=JSON)
            assert (answer.status_code, code(answer)) == (413, "too_large")
            answer = await client.post("/executions", content=b"[%s]" % (one % (b"x" * 9_000_000)), headers=JSON)
            assert (answer.status_code, code(answer)) == (413, "too_large")
            answer = await client.post("/executions", content=BODY, headers=JSON | {"Content-Encoding": "deflate"})
            assert (answer.status_code, code(answer)) == (415, "unsupported_media_type")
            parts = gzip.compress(BODY[:5]) + gzip.compress(BODY[5:])
            answer = await client.post("/executions", content=parts, headers=JSON | {"Content-Encoding": "gzip"})
            assert answer.status_code == 201, "several gzip files, one after another, are one body"
            answer = await client.post("/executions", content=parts + b"x", headers=JSON | {"Content-Encoding": "gzip"})
            assert (answer.status_code, code(answer)) == (400, "bad_body")
            cut = gzip.compress(BODY)[:-4]
            answer = await client.post("/executions", content=cut, headers=JSON | {"Content-Encoding": "gzip"})
            assert (answer.status_code, code(answer)) == (400, "bad_body")


async def test_case_26_large_bodies_are_checked_beside_the_event_loop(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers others meanwhile. Items are counted and measured first, because that takes no time."""
    add_jobs(server.store, FREE)
    seen: list[tuple[bool, int]] = []
    check = strict_json.check

    def noted(data: bytes) -> None:
        seen.append((threading.current_thread() is threading.main_thread(), len(data)))
        check(data)

    monkeypatch.setattr(strict_json, "check", noted)
    item = b'{"job":"free","tags":["%s"]}' % (b"x" * 100)
    async with server.client() as client:
        for count, status in ((2, 201), (900, 201), (1001, 413)):
            content = b"[" + b",".join([item] * count) + b"]"
            assert (await client.post("/executions", content=content, headers=JSON)).status_code == status
        large = b'[{"job":"free","arguments":{"x":"%s"}}]' % (b"x" * 2_000_000)
        answer = await client.post("/executions", content=large, headers=JSON)
        assert (answer.status_code, code(answer)) == (413, "too_large")
        assert seen == [(True, 2 * len(item) + 3), *[(False, len(item))] * 900]
        for path in ("/executions", "/events"):
            broken = b"[" + b",".join([item] * 900 + [b'{"a":{"b":1,"b":2}}']) + b"]"
            answer = await client.post(path, content=broken, headers=JSON)
            assert (code(answer), answer.json()["errors"][0]["pointer"]) == ("bad_json", "/900/a/b")
            for bad in (broken[:-3], b"[" * 100_000, broken + b"x", b"\xef\xbb\xbf" + broken, b"[\xff]" + broken):
                assert code(await client.post(path, content=bad, headers=JSON)) == "bad_json"
