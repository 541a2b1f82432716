"""huey, on SQLite with fsync (as durable as Rota) or on Redis, polling every 10 ms at most."""

from __future__ import annotations

import os
from collections.abc import Iterable

from huey import RedisHuey, SqliteHuey  # type: ignore[import-not-found]

from benchmarks import probe

COMMAND = ["huey_consumer", "benchmarks.peers.huey.huey", "-w", "2", "-k", "process", "-d", "0.01", "-m", "0.01", "-q"]
SHARE = 0.1
URL = os.environ["PEER_URL"]

if URL.startswith("redis:"):
    huey = RedisHuey("peer", url=URL, results=False)
else:
    huey = SqliteHuey("peer", filename=URL.removeprefix("sqlite:///"), fsync=True, results=False)


@huey.task()
def hit(number: int, since: float) -> None:
    probe.current().note(number, since)


def enqueue(calls: Iterable[tuple[int, float]]) -> None:
    for call in calls:
        hit(*call)
