"""The HTTP API under load: enqueues one by one and as lines, reads meanwhile, open streams, and requests that wait.

The clients (`http_clients.py`) are in a process of their own. Enqueues one by one alternate between Rota's server and a
bare handler with group commit (`bare_handler.py`), which run at the same time on the same database.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.database import Database
from benchmarks.place import ROOT
from benchmarks.processes import Tree, started
from benchmarks.sections import OPEN_S, Samples, cores, statements_per_s
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import percentile, until
from tests.support.daemons import free_port

START_S = 30.0
TURNS = 2
"""How often Rota and the bare handler alternate in a round."""
PACE_S = 0.02
_LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
Measured = dict[str, float]


def http_api(site: Site, size: Size) -> Samples:
    with site.fresh() as database, rota_server(database) as (server, port):
        yield from _single(database, server, port, size)
        yield from _lines(server, port, size)
        yield from _reads(database, port, size)
    yield from _streams(site, size)
    yield from _waits(site, size)


def _single(database: Database, server: Tree, port: int, size: Size) -> Samples:
    with _bare(database) as (bare, bare_port):
        rota, plain = _Sum(database, server, port), _Sum(database, bare, bare_port)
        for one in (rota, plain):
            _run("single", one.port, size.single_s / 2)  # The first calls open connections to the database.
        for _ in range(TURNS):
            for one in (rota, plain):
                one.measure(size.single_s)
    yield "http_single", rota.per_s
    yield "http_bare", plain.per_s
    yield "http_share", 100 * rota.per_s / plain.per_s
    yield "http_cpu", rota.each_us(rota.own_s)
    yield "http_bare_cpu", plain.each_us(plain.own_s)
    yield "http_client_cpu", rota.each_us(rota.client_s)
    if database.server is not None:
        yield "http_server_cpu", rota.each_us(rota.server_s)


class _Sum:
    """What several measurements of one server add up to."""

    def __init__(self, database: Database, tree: Tree, port: int) -> None:
        self._database, self._tree, self.port = database, tree, port
        self.count = self.seconds = self.own_s = self.client_s = self.server_s = 0.0

    def measure(self, seconds: float) -> None:
        server = self._database.server
        own, of_server = self._tree.cpu_s(), server.cpu_s() if server else 0.0
        found = _run("single", self.port, seconds)
        self.own_s += self._tree.cpu_s() - own
        self.server_s += server.cpu_s() - of_server if server else 0.0
        self.count += found["count"]
        self.seconds += found["seconds"]
        self.client_s += found["cpu_s"]

    @property
    def per_s(self) -> float:
        return self.count / self.seconds

    def each_us(self, seconds: float) -> float:
        return seconds / max(1.0, self.count) * 1e6


def _lines(server: Tree, port: int, size: Size) -> Samples:
    memory, own = sum(server.peak_mb()), server.cpu_s()
    found = _run("lines", port, size.bulk[1])
    yield "http_lines", found["count"] / found["seconds"]
    yield "http_lines_cpu", (server.cpu_s() - own) / found["count"] * 1e6
    yield "http_lines_first", found["first_s"] * 1e3
    yield "http_lines_memory", max(0.0, sum(server.peak_mb()) - memory)


def _reads(database: Database, port: int, size: Size) -> Samples:
    """Lists, single executions and counts, while lines are accepted."""
    paths = {
        "list": "/executions?limit=50",
        "get": f"/executions/{database.jobs.echo.enqueue(1).id}",
        "counts": "/counts",
    }
    took_s: dict[str, list[float]] = {name: [] for name in paths}
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=size.limit_s)
    with client_of("lines", port, size.flood) as enqueuing:
        while enqueuing.poll() is None or not took_s["counts"]:
            for name, path in paths.items():
                began = time.perf_counter()
                client.request("GET", f"/api/v1{path}")
                answer = client.getresponse()
                assert answer.read()
                assert answer.status == 200
                took_s[name].append(time.perf_counter() - began)
            time.sleep(PACE_S)
        found = _answer(enqueuing)
    yield "http_flood", found["count"] / found["seconds"]
    for name, values in took_s.items():
        yield f"http_{name}_p99", percentile(values, 99) * 1e3


def _streams(site: Site, size: Size) -> Samples:
    with (
        site.fresh() as database,
        rota_server(database, database.traced()) as (server, port),
        _held(port, ["/stream"] * size.streams) as client,
    ):
        yield from _while_open("http_streams", database, server, size)
        assert client.stdin is not None
        client.stdin.close()
        assert _answer(client)["count"] == size.streams, "some streams were closed"


def _waits(site: Site, size: Size) -> Samples:
    """Requests that wait for executions; then a worker runs these."""
    with site.fresh() as database, rota_server(database, database.traced()) as (server, port):
        ids = [handle.id for handle in database.jobs.noop.enqueue_many([()] * size.callers)]
        before = database.statements()
        with _held(port, [f"/executions/{id}?wait=60s" for id in ids]) as client:
            time.sleep(min(OPEN_S, size.idle_s))  # Until each request has had its first look.
            yield "http_waits_first", (database.statements() - before) / size.callers
            yield from _while_open("http_waits", database, server, size)
            with database.worker():
                began = time.perf_counter()
                until(lambda: client.poll() is not None, "an answer to every wait", size.limit_s)
                yield "http_waits_answered", time.perf_counter() - began
            assert _answer(client)["count"] == 0, "a wait was not answered"


def _while_open(name: str, database: Database, server: Tree, size: Size) -> Samples:
    time.sleep(min(OPEN_S, size.idle_s))
    own, _ = cores(database, [server], size.idle_s)
    yield f"{name}_cpu", own * 100
    yield f"{name}_statements", statements_per_s(database, size.idle_s)


# --- Processes -------------------------------------------------------------------------------------


@contextmanager
def rota_server(database: Database, environment: dict[str, str] | None = None) -> Iterator[tuple[Tree, int]]:
    database.jobs.echo.enqueue(1)
    log = database.folder / "server.log"
    command = [sys.executable, "-m", "rota", "server", "--port", "0"]
    with started(command, {**os.environ, "ROTA_URL": database.url, **(environment or {})}, log) as server:
        until(lambda: bool(_LISTENING.search(log.read_text())), "a server that listens", START_S)
        found = _LISTENING.search(log.read_text())
        assert found is not None
        yield server, int(found[1])


@contextmanager
def _bare(database: Database) -> Iterator[tuple[Tree, int]]:
    port, log = free_port(), database.folder / "bare.log"
    command = [sys.executable, "-m", "uvicorn", "benchmarks.bare_handler:app", "--port", str(port), "--no-access-log"]
    command += ["--loop", "uvloop", "--http", "httptools"]
    with started(command, {**os.environ, "BARE_URL": database.url, "PYTHONPATH": str(ROOT)}, log) as tree:
        until(lambda: "running on" in log.read_text(), "a handler that listens", START_S)
        yield tree, port


@contextmanager
def client_of(what: str, port: int, amount: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.http_clients", what, str(port), str(amount)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def _held(port: int, paths: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Requests that are open meanwhile."""
    with client_of("hold", port, 0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{path}\n" for path in paths) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "open\n"
        yield process


def _run(what: str, port: int, amount: float) -> Measured:
    with client_of(what, port, amount) as process:
        return _answer(process)


def _answer(process: subprocess.Popen[str]) -> Measured:
    assert process.stdout is not None
    text = process.stdout.read()
    assert process.wait() == 0, "the client failed"
    found: Measured = json.loads(text)
    return found
