"""How fast executions are accepted over HTTP: one by one from many connections, and as a stream of lines.

The clients are in a process of their own per measurement, with plain sockets: a client library would take more time
than the server. Beside Rota's server runs a bare handler with group commit (`bare_handler.py`), in the same round.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.database import Database
from benchmarks.place import ROOT
from benchmarks.processes import Tree, started
from benchmarks.sections import Samples
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import until
from tests.support.daemons import free_port

CONNECTIONS = 64
LINES = 100
"""Lines in one piece of a stream."""
START_S = 30.0
WARM_S = 1.0
BODY = b'{"job":"echo","arguments":{"number":7}}'
_LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")


def http(site: Site, size: Size) -> Samples:
    with site.fresh() as database:
        with _rota(database) as (server, port):
            rate = _measured("single", port, size.single_s)
            yield "http_single", rate
            before = sum(server.peak_mb())
            yield "http_lines", _measured("lines", port, size.bulk[1])
            yield "http_lines_memory", max(0.0, sum(server.peak_mb()) - before)
        with _bare(database) as port:
            bare = _measured("single", port, size.single_s)
    yield "http_bare", bare
    yield "http_share", 100 * rate / bare


@contextmanager
def _rota(database: Database) -> Iterator[tuple[Tree, int]]:
    database.jobs.echo.enqueue(1)
    log = database.folder / "server.log"
    command = [sys.executable, "-m", "rota", "server", "--port", "0"]
    with started(command, {**os.environ, "ROTA_URL": database.url}, log) as server:
        until(lambda: bool(_LISTENING.search(log.read_text())), "a server that listens", START_S)
        found = _LISTENING.search(log.read_text())
        assert found is not None
        yield server, int(found[1])


@contextmanager
def _bare(database: Database) -> Iterator[int]:
    port, log = free_port(), database.folder / "bare.log"
    url = database.url if database.url.startswith("postgres") else f"sqlite:///{database.folder}/bare.db"
    command = [sys.executable, "-m", "uvicorn", "benchmarks.bare_handler:app", "--port", str(port), "--no-access-log"]
    with started(command, {**os.environ, "BARE_URL": url, "PYTHONPATH": str(ROOT)}, log):
        until(lambda: "running on" in log.read_text(), "a handler that listens", START_S)
        yield port


def _measured(what: str, port: int, amount: float) -> float:
    """The rate that the clients saw."""
    command = [sys.executable, "-m", "benchmarks.http", what, str(port), str(amount)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


# --- The clients -----------------------------------------------------------------------------------


def _request(port: int, kind: str, *headers: str) -> bytes:
    lines = ["POST /api/v1/executions HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Content-Type: {kind}", *headers, "", ""]
    return "\r\n".join(lines).encode()


async def _single(port: int, seconds: float) -> float:
    """Executions per second, one by one, from `CONNECTIONS` connections."""
    whole = _request(port, "application/json", f"Content-Length: {len(BODY)}") + BODY
    # The first calls open connections to the database.
    await asyncio.gather(*(_calls(port, whole, time.perf_counter() + WARM_S) for _ in range(CONNECTIONS)))
    began = time.perf_counter()
    counts = await asyncio.gather(*(_calls(port, whole, began + seconds) for _ in range(CONNECTIONS)))
    return sum(counts) / (time.perf_counter() - began)


async def _calls(port: int, whole: bytes, until_at: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    while time.perf_counter() < until_at:
        writer.write(whole)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 201"), head
        length = re.search(rb"content-length: (\d+)", head.lower())
        assert length is not None
        await reader.readexactly(int(length[1]))
        count += 1
    writer.close()
    return count


async def _lines(port: int, count: int) -> float:
    """Lines per second, all in one request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request(port, "application/x-ndjson", "Transfer-Encoding: chunked", "Connection: close"))
    piece = (BODY + b"\n") * LINES
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
    began = time.perf_counter()
    for _ in range(count // LINES):
        writer.write(chunk)
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    answer = await reader.read()
    assert b'"accepted":%d' % (count // LINES * LINES) in answer, answer[-500:]
    return count / (time.perf_counter() - began)


if __name__ == "__main__":
    name, address, amount = sys.argv[1:]
    run = _single(int(address), float(amount)) if name == "single" else _lines(int(address), int(float(amount)))
    print(asyncio.run(run))
