"""arq on Redis, looking every 10 ms, with a hundred jobs at once in each process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any

from arq import create_pool  # type: ignore[import-not-found]
from arq.connections import RedisSettings  # type: ignore[import-not-found]

from benchmarks import probe

COMMAND = ["arq", "benchmarks.peers.arq.WorkerSettings"]
PROCESSES = 2
SHARE = 0.03


async def hit(_: Any, number: int, since: float) -> None:
    probe.current().note(number, since)


class WorkerSettings:
    """What arq's command line reads."""

    redis_settings = RedisSettings.from_dsn(os.environ["PEER_URL"])
    functions = (hit,)
    max_jobs = 100
    poll_delay = 0.01
    keep_result = 0


def enqueue(calls: Iterable[tuple[int, float]]) -> None:
    async def go() -> None:
        pool = await create_pool(WorkerSettings.redis_settings)
        for call in calls:
            await pool.enqueue_job("hit", *call)

    asyncio.run(go())
