"""Rota and huey in turns, with the same task, the same disk and the same machine: only the ratio means something."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks import probe
from benchmarks.database import fresh
from benchmarks.place import ROOT
from benchmarks.processes import started
from benchmarks.sections import SETTLE_S, Samples, pickups, single
from benchmarks.sizes import Size
from benchmarks.steady import percentile, rate, until

VENV = ROOT / ".venv-peers"
INSTALL_S = 120


def version() -> str:
    """The installed peer's version, or why there is none; installs it if need be."""
    install = Path(__file__).with_name("install")
    try:
        subprocess.run([install], check=True, timeout=INSTALL_S)
        command = [str(VENV / "bin" / "python"), "-c", "import huey; print(huey.__version__)"]
        return subprocess.run(command, check=True, timeout=INSTALL_S, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"could not be installed ({error})"


def compare(folder: Path, size: Size) -> Samples:
    yield from _rota(folder, size)
    yield from _huey(folder, size, 2)
    yield from _huey(folder, size, 1)


def _rota(folder: Path, size: Size) -> Samples:
    with fresh(folder) as database:
        yield "rota_enqueue", single(database, 1, size.single_s)
    with fresh(folder) as database:
        database.jobs.touch.enqueue_many([()] * size.drain)
        database.settle()
        with database.worker() as tree:
            yield "rota_drain", rate(database.probe.count, size.drain, size.limit_s)
            time.sleep(SETTLE_S)
            delays = pickups(database, size)
            yield "rota_p50", percentile(delays, 50) * 1e3
            yield "rota_p99", percentile(delays, 99) * 1e3
            yield "rota_rss", sum(tree.rss_mb())
        database.check_ended(size.drain + size.pickups)


def _huey(parent: Path, size: Size, workers: int) -> Samples:
    """The consumer's options are those of its fastest set-up: processes, and polling every 10 ms at most."""
    with tempfile.TemporaryDirectory(prefix="huey-", dir=parent) as name:
        folder = Path(name)
        seen = probe.create(folder / "probe")
        environment = {
            "PEER_DATABASE": str(folder / "huey.db"),
            probe.VARIABLE: str(folder / "probe"),
            "PYTHONPATH": str(ROOT),
        }
        yield f"huey{workers}_enqueue", size.peer / _client(environment, "bulk", size.peer, size.limit_s)
        options = ["-w", str(workers), "-k", "process", "-d", "0.01", "-m", "0.01", "-q"]
        command = [str(VENV / "bin" / "huey_consumer"), "benchmarks.peers.huey_app.huey", *options]
        with started(command, environment, folder / "consumer.log") as tree:
            yield f"huey{workers}_drain", rate(seen.count, size.peer, size.limit_s)
            time.sleep(SETTLE_S)
            _client(environment, "paced", size.pickups, size.limit_s)
            until(lambda: seen.count() >= size.peer + size.pickups, "huey's last pick-up", size.limit_s)
            delays = seen.delays(size.pickups)
            yield f"huey{workers}_p50", percentile(delays, 50) * 1e3
            yield f"huey{workers}_p99", percentile(delays, 99) * 1e3
            yield f"huey{workers}_rss", sum(tree.rss_mb())


def _client(environment: dict[str, str], way: str, count: int, limit_s: float) -> float:
    command = [str(VENV / "bin" / "python"), "-m", "benchmarks.peers.huey_client", way, str(count)]
    answer = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, check=True, timeout=limit_s, capture_output=True, text=True
    )
    return float(answer.stdout)
