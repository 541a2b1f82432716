"""Celery on Redis or RabbitMQ: two processes, no results kept, and no gossip between workers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable

from celery import Celery  # type: ignore[import-not-found]

from benchmarks import probe

_QUIET = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
COMMAND = ["celery", "-A", "benchmarks.peers.celery", "worker", "-c", "2", "-l", "WARNING", *_QUIET]
SHARE = 0.03

app = Celery("peer", broker=os.environ["PEER_URL"])
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=32,
    broker_connection_retry_on_startup=True,
)


@app.task
def hit(number: int, since: float) -> None:
    probe.current().note(number, since)


@app.task
def run() -> None:
    subprocess.run(["/bin/true"], check=True)
    probe.current().bump()


def enqueue(calls: Iterable[tuple[int, float]]) -> None:
    for call in calls:
        hit.delay(*call)


def enqueue_commands(calls: Iterable[object]) -> None:
    for _ in calls:
        run.delay()
