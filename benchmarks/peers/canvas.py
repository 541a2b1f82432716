"""Peers that run workflows, after Rota in every round and with fewer steps: only rates can be compared."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.brokers import broker, listens, missing
from benchmarks.peers.catalogue import ORCHESTRATORS, Orchestrator, Peer
from benchmarks.peers.environment import PEERS, PREFECT, install, program, versions
from benchmarks.place import ROOT
from benchmarks.processes import Tree, started
from benchmarks.sections import Samples
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import Stalled, until
from tests.support.daemons import LOCALHOST, free_port

START_S = 180.0
"""Prefect's server makes its database first, in many small steps."""
IN_TURN = 3


class Running(NamedTuple):
    """What runs beside the client, and what the client needs in its environment."""

    tree: Tree
    environment: dict[str, str]


def canvas(site: Site, size: Size) -> Samples:
    for peer in ORCHESTRATORS:
        if reason := _why_not(peer, site):
            print(f"  {peer.name} is left out: {reason}", file=sys.stderr, flush=True)
        else:
            with site.new_folder("peer-") as folder, _RUNNING[peer.module](site, folder) as running:
                yield from _samples(peer, running, size)


def prepare() -> Iterable[str]:
    """Installs what is not in the environment of the other peers; says which version that is, or why it is missing."""
    yield install(PREFECT) or versions(PREFECT, ["prefect"])


def _why_not(peer: Orchestrator, site: Site) -> str:
    """Why this peer cannot be measured here; empty if it can."""
    if peer.module == "canvas_celery":
        return missing("redis")
    if not Path(program(PREFECT, "prefect")).exists():
        return "it is not installed"
    if site.server is not None and not site.server.one(_TRIGRAMS):
        return "the PostgreSQL server has no extension pg_trgm, which Prefect needs; see ROTA_TEST_POSTGRES_BIN"
    return ""


def _samples(peer: Orchestrator, running: Running, size: Size) -> Samples:
    steps, items, runs = (peer.part(count) for count in (size.chain, size.fan, size.runs))
    yield f"{peer.slug}_chain", _seconds(peer, running, "chain", steps, size) / steps * 1e3
    yield f"{peer.slug}_fan", (items + 1) / _seconds(peer, running, "fan", items, size)
    yield f"{peer.slug}_many", IN_TURN * runs / _seconds(peer, running, "many", runs, size)
    yield f"{peer.slug}_rss", sum(running.tree.rss_mb())


def _seconds(peer: Orchestrator, running: Running, way: str, count: int, size: Size) -> float:
    command = [program(peer.environment, "python"), "-m", "benchmarks.peers.client", peer.module, way, str(count)]
    environment = os.environ | running.environment
    answer = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, timeout=size.limit_s, capture_output=True, text=True
    )
    if answer.returncode:
        raise RuntimeError(f"{peer.name} {way}: {answer.stderr.strip()[-1000:]}")
    return float(json.loads(answer.stdout.splitlines()[-1]))


@contextlib.contextmanager
def _celery(site: Site, folder: Path) -> Iterator[Running]:
    with broker(Peer("celery", "redis"), site, folder) as url:
        environment = {"PEER_URL": url, "PYTHONPATH": str(ROOT)}
        options = ["-A", "benchmarks.peers.canvas_celery", "worker", "-c", "2", "-l", "WARNING"]
        with started([program(PEERS, "celery"), *options], environment, folder / "worker.log") as tree:
            yield Running(tree, environment)


@contextlib.contextmanager
def _prefect(site: Site, folder: Path) -> Iterator[Running]:
    port = free_port()
    with broker(Peer("prefect", site.kind), site, folder) as url:
        scheme, _, rest = url.partition("://")
        environment = {
            "PREFECT_HOME": str(folder),
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"{_DRIVERS[scheme]}://{rest}",
            "PREFECT_API_URL": f"http://{LOCALHOST}:{port}/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_LOGGING_LEVEL": "WARNING",
            "DO_NOT_TRACK": "1",
            "PYTHONPATH": str(ROOT),
        }
        options = ["server", "start", "--host", LOCALHOST, "--port", str(port), "--no-ui"]
        with started([program(PREFECT, "prefect"), *options], environment, folder / "server.log") as tree:
            until(lambda: _answers(tree, port), "Prefect's server", START_S)
            yield Running(tree, environment)


def _answers(tree: Tree, port: int) -> bool:
    if not tree.is_running:
        raise Stalled(f"Prefect's server {tree.last_words()}")
    return listens(port)


_RUNNING = {"canvas_celery": _celery, "canvas_prefect": _prefect}
_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}
_TRIGRAMS = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'"
