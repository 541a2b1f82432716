"""Rota and the peers in turns, with the same task on the same machine: only the ratio is meaningful."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from benchmarks import probe
from benchmarks.peers import environment
from benchmarks.peers.brokers import broker, missing
from benchmarks.peers.catalogue import PEERS, Peer
from benchmarks.peers.environment import program
from benchmarks.place import ROOT
from benchmarks.probe import Probe
from benchmarks.processes import Tree, started
from benchmarks.sections import BATCH, SETTLE_S, Samples, pickups, single
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import percentile, rate, until

PYTHON = program(environment.PEERS, "python")
SINGLES = 2_000
MOST_TIMERS = 10_000


class Description(msgspec.Struct, frozen=True):
    """What a peer's module says of itself; see client.py."""

    version: str
    command: list[str]
    processes: int
    share: float
    has_bulk: bool
    ended: str


def versions() -> str:
    return environment.versions(environment.PEERS, sorted({peer.module for peer in PEERS}))


def peers(site: Site, size: Size) -> Samples:
    """Those that keep their jobs in the same kind of database."""
    return _in_turns(site, size, "peers")


def brokers(site: Site, size: Size) -> Samples:
    """Those that need another server, if the system has it."""
    return _in_turns(site, size, "brokers")


def timers(site: Site, size: Size) -> Samples:
    """Schedulers that keep their timers in memory, with at most `MOST_TIMERS` of them."""
    command = [
        PYTHON,
        "-m",
        "benchmarks.peers.timers",
        str(min(MOST_TIMERS, size.schedules)),
    ]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=600)
    yield from json.loads(found.stdout).items()


def left_out() -> Iterable[str]:
    for name in sorted({peer.broker for peer in PEERS}):
        if reason := missing(name):
            yield f"{reason}: no peers on it"


def _in_turns(site: Site, size: Size, section: str) -> Samples:
    chosen = [peer for peer in PEERS if peer.section(site.kind) == section and not missing(peer.broker)]
    if chosen:
        yield from _rota(site, size)
    for peer in chosen:
        with site.new_folder("peer-") as folder, broker(peer, site, folder) as url:
            yield from Measurement(peer, site, size, folder, url).samples()


def _rota(site: Site, size: Size) -> Samples:
    with site.fresh() as database:
        yield "rota_enqueue", single(database, 1, size.single_s)
    with site.fresh() as database:
        calls = [(0, 0.0)] * BATCH
        began = time.perf_counter()
        for _ in range(size.drain // BATCH or 1):
            database.jobs.stamp.enqueue_many(calls)
        passed = time.perf_counter() - began
        count = database.count("ready")
        yield "rota_bulk", count / passed
        database.settle()
        with database.worker() as tree:
            yield "rota_drain", rate(database.probe.count, count, size.limit_s)
            until(lambda: database.count("finished") >= count, "the last end", size.limit_s)
            time.sleep(SETTLE_S)
            delays = pickups(database, size)
            yield "rota_p50", percentile(delays, 50) * 1e3
            yield "rota_p99", percentile(delays, 99) * 1e3
            yield "rota_rss", sum(tree.rss_mb())


class Measurement:
    """One peer on an empty broker."""

    def __init__(self, peer: Peer, site: Site, size: Size, folder: Path, url: str) -> None:
        self._peer, self._site, self._size, self._folder, self._url = peer, site, size, folder, url
        self._seen: Probe = probe.create(folder / "probe")
        self._environment = {"PEER_URL": url, probe.VARIABLE: str(folder / "probe"), "PYTHONPATH": str(ROOT)}
        self._about = msgspec.convert(self._client("describe"), Description)
        self._count = max(1, round(self._about.share * size.drain))

    def samples(self) -> Samples:
        slug, size, count = self._peer.slug, self._size, self._count
        self._client("setup")
        singles = min(SINGLES, count // 2) if self._about.has_bulk else count
        yield f"{slug}_enqueue", singles / self._client("single", singles)
        if count > singles:
            yield f"{slug}_bulk", (count - singles) / self._client("bulk", count - singles)
        self._settle()
        with contextlib.ExitStack() as stack:
            trees = [stack.enter_context(self._worker()) for _ in range(self._about.processes)]
            yield f"{slug}_drain", rate(self._seen.count, count, size.limit_s)
            self._check(count)
            time.sleep(SETTLE_S)
            self._client("paced", size.pickups)
            until(lambda: self._seen.count() >= count + size.pickups, "the peer's last pick-up", size.limit_s)
            delays = self._seen.delays(size.pickups)
            yield f"{slug}_p50", percentile(delays, 50) * 1e3
            yield f"{slug}_p99", percentile(delays, 99) * 1e3
            yield f"{slug}_rss", sum(sum(tree.rss_mb()) for tree in trees)

    def _settle(self) -> None:
        if self._peer.broker == "postgresql":
            assert self._site.server is not None
            self._site.server.settle(self._url.rpartition("/")[2])

    def _check(self, count: int) -> None:
        """The database must say that they ended, where the peer keeps that."""
        if self._about.ended:
            with psycopg.connect(self._url, autocommit=True) as session:
                query = self._about.ended.encode()
                until(lambda: _first(session.execute(query).fetchone()) >= count, "the peer's ends", 30)

    def _worker(self) -> contextlib.AbstractContextManager[Tree]:
        name, *arguments = self._about.command
        command = [program(environment.PEERS, name), *arguments]
        return started(command, self._environment, self._folder / "worker.log")

    def _client(self, way: str, count: int = 0) -> Any:
        command = [
            PYTHON,
            "-m",
            "benchmarks.peers.client",
            self._peer.module,
            way,
            str(count),
        ]
        answer = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | self._environment,
            check=False,
            timeout=self._size.limit_s,
            capture_output=True,
            text=True,
        )
        if answer.returncode:
            raise RuntimeError(f"{self._peer.name} {way}: {answer.stderr.strip()[-1000:]}")
        return json.loads(answer.stdout.splitlines()[-1])


def _first(row: tuple[Any, ...] | None) -> int:
    return int(row[0]) if row else 0
