"""What the dashboard costs: its pages on a long history, and the drain while some Overviews are open.

An open Overview is a client that keeps the stream of live changes, and asks for each part of the page as often as the
page does while executions end (`http_clients.py: watch`). No browser runs, because its drawing would take the
processors that are measured.
"""

from __future__ import annotations

import http.client
import statistics
import time

from benchmarks.database import Database
from benchmarks.http import client_of, rota_server
from benchmarks.sections import Samples, drained
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import percentile

PAGES = {"executions": "/executions?limit=50", "overview": "/overview", "counts": "/counts?by=status"}
OPEN = 10
CALLS = 40
PAIRS = 5
"""How often the drain is measured without and with open Overviews."""


def dashboard(site: Site, size: Size) -> Samples:
    with site.fresh() as database:
        drained(database, min(size.growth, size.pages), size.limit_s)
        database.remember(size.pages)
        with rota_server(database) as (_, port):
            for name, path in PAGES.items():
                took_s = _answers(port, path, size.limit_s)
                yield f"page_{name}_p50", percentile(took_s, 50) * 1e3
                yield f"page_{name}_p99", percentile(took_s, 99) * 1e3
    with site.fresh() as database, rota_server(database) as (_, port):
        drained(database, size.growth, size.limit_s)  # The first drain on a new database is slower.
        pairs = [
            (_drained_beside(database, port, 0, size), _drained_beside(database, port, OPEN, size))
            for _ in range(PAIRS)
        ]
    yield "open_none", statistics.median(without for without, _ in pairs)
    yield "open_some", statistics.median(beside for _, beside in pairs)
    yield "open_share", 100 * statistics.median(beside / without for without, beside in pairs)


def _answers(port: int, path: str, limit_s: float) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s)
    took_s = []
    for _ in range(CALLS):
        began = time.perf_counter()
        connection.request("GET", f"/api/v1{path}")
        answer = connection.getresponse()
        assert answer.read()
        assert answer.status == 200
        took_s.append(time.perf_counter() - began)
    connection.close()
    return took_s


def _drained_beside(database: Database, port: int, count: int, size: Size) -> float:
    """The rate of a drain while so many Overviews are open."""
    with client_of("watch", port, count) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stdout.readline() == "open\n"
        rate = drained(database, size.drain, size.limit_s)
        client.stdin.close()
        assert client.wait(size.limit_s) == 0
    return rate
