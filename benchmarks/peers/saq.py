"""saq on Redis, with a hundred jobs at once in each process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any

from saq import Queue  # type: ignore[import-not-found]

from benchmarks import probe

COMMAND = ["saq", "benchmarks.peers.saq.settings", "--quiet"]
PROCESSES = 2
SHARE = 0.05

queue = Queue.from_url(os.environ["PEER_URL"])


async def hit(_: Any, *, number: int, since: float) -> None:
    probe.current().note(number, since)


settings = {"queue": queue, "functions": [hit], "concurrency": 100}


def enqueue(calls: Iterable[tuple[int, float]]) -> None:
    async def go() -> None:
        await queue.connect()
        for number, since in calls:
            await queue.enqueue("hit", number=number, since=since, ttl=-1)
        await queue.disconnect()

    asyncio.run(go())
