"""taskiq on streams of Redis, with two worker processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from taskiq_redis import RedisStreamBroker  # type: ignore[import-not-found]

from benchmarks import probe

COMMAND = ["taskiq", "worker", "benchmarks.peers.taskiq:broker", "-w", "2", "--log-level", "ERROR"]
SHARE = 0.08

broker = RedisStreamBroker(os.environ["PEER_URL"])


@broker.task
async def hit(number: int, since: float) -> None:
    probe.current().note(number, since)


def enqueue(calls: Iterable[tuple[int, float]]) -> None:
    async def go() -> None:
        await broker.startup()
        for call in calls:
            await hit.kiq(*call)
        await broker.shutdown()

    asyncio.run(go())
