"""The cost of a no-op: in a task, a thread, a process, as a command and as a request, and by hand."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import byhand, errands
from benchmarks.database import Database
from benchmarks.errands import APP, BY_HAND, KINDS, VARIABLE, Errands
from benchmarks.peers.brokers import listens
from benchmarks.place import ROOT
from benchmarks.processes import started
from benchmarks.sections import Samples
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import until
from rota import Job
from tests.support.daemons import LOCALHOST, free_port

START_S = 30.0
FEWEST = 300
"""More than run at once, so that their ends are not all recorded at one instant."""
MEGA = 1_000_000


def kinds(site: Site, size: Size) -> Samples:
    """Each executor, and the same by hand right after it."""
    with _answering(site):
        with _errands(site) as (database, jobs), database.worker(app=APP):
            yield from _turns(jobs, size)
        for kind, part in KINDS.items():
            count = max(FEWEST, round(part * size.errands))
            yield f"{kind}_rate", _drained(site, size, kind, count)
            if kind in BY_HAND:
                yield f"hand_{kind}_rate", byhand.per_s(kind, count)


def _turns(jobs: Errands, size: Size) -> Samples:
    """The time from `enqueue` to `result`, one by one. The cost of an executor is that time minus the time of an async
    task."""
    acts = {kind: functools.partial(_done, job, size) for kind, job in jobs.kinds.items()}
    found = byhand.medians_ms({"async": acts["async"], "thread": acts["thread"]}, size.turns)
    yield "async_each", found["async"]
    yield "thread_each", found["thread"]
    for kind in BY_HAND:
        with byhand.act(kind) as by_hand:
            found = byhand.medians_ms({"async": acts["async"], "ours": acts[kind], "hand": by_hand}, size.turns)
        yield f"{kind}_each", found["ours"]
        yield f"{kind}_over", found["ours"] - found["async"]
        yield f"hand_{kind}_each", found["hand"]


def spoken(site: Site, size: Size) -> Samples:
    """The cost of storing the output of jobs."""
    silent = _drained(site, size, "async", size.errands)
    talking = _drained(site, size, "talk", max(FEWEST, size.errands // 5))
    yield "talk_rate", talking
    yield "talk_lines", talking * 10
    yield "talk_ratio", talking / silent
    with _errands(site) as (database, jobs), database.worker(app=APP) as tree:
        _done(jobs.kinds["command"], size)
        began = time.perf_counter()
        jobs.flood.enqueue(bytes=size.flood_mb * MEGA).result(timeout=size.limit_s)
        yield "flood", size.flood_mb / (time.perf_counter() - began)
        yield "flood_rss", sum(tree.rss_mb())
    began = time.perf_counter()
    subprocess.run(errands.flooding(str(size.flood_mb * MEGA)), check=True, capture_output=True)
    yield "hand_flood", size.flood_mb / (time.perf_counter() - began)


@contextlib.contextmanager
def _errands(site: Site) -> Iterator[tuple[Database, Errands]]:
    with site.fresh() as database:
        jobs = errands.build(database.url)
        try:
            yield database, jobs
        finally:
            jobs.app.close()


def _done(job: Job[..., Any, Any], size: Size) -> None:
    job.enqueue().result(timeout=size.limit_s)


def _drained(site: Site, size: Size, kind: str, count: int) -> float:
    with _errands(site) as (database, jobs):
        job = jobs.talk if kind == "talk" else jobs.kinds[kind]
        job.enqueue_many([()] * count)
        database.settle()
        drain = database.drain(count, size.limit_s)
        with database.worker(app=APP):
            return drain.per_s()


@contextlib.contextmanager
def _answering(site: Site) -> Iterator[None]:
    """A server for requests, in a process of its own; workers find its address in their environment."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.answering", str(port)]
    with site.new_folder("http-") as folder, started(command, {"PYTHONPATH": str(ROOT)}, folder / "log"):
        until(lambda: listens(port), "the server for requests", START_S)
        os.environ[VARIABLE] = f"http://{LOCALHOST}:{port}/"
        try:
            yield
        finally:
            del os.environ[VARIABLE]
