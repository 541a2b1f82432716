"""RQ on Redis: a pool of two workers, which fork for every job."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable

from redis import Redis  # type: ignore[import-not-found]
from rq import Queue  # type: ignore[import-not-found]

from benchmarks import probe

COMMAND = ["rq", "worker-pool", "-n", "2", "-q", "--url", os.environ["PEER_URL"]]
SHARE = 0.004


def hit(number: int, since: float) -> None:
    probe.current().note(number, since)


def run() -> None:
    subprocess.run(["/bin/true"], check=True)
    probe.current().bump()


def enqueue(calls: Iterable[tuple[int, float]]) -> None:
    queue = Queue(connection=Redis.from_url(os.environ["PEER_URL"]))
    for call in calls:
        queue.enqueue(hit, *call, result_ttl=0)


def enqueue_commands(calls: Iterable[object]) -> None:
    queue = Queue(connection=Redis.from_url(os.environ["PEER_URL"]))
    for _ in calls:
        queue.enqueue(run, result_ttl=0)
