"""pgqueuer on PostgreSQL: asyncpg, uvloop and pieces of 100, with which it is fastest. All its tables are logged."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import asyncpg  # type: ignore[import-not-found]
import uvloop
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

from benchmarks import probe

COMMAND = ["python", "-m", "benchmarks.peers.pgqueuer"]
PROCESSES = 2
SHARE = 0.5
ENDED = "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"
BATCH = 100
AT_ONCE = 1_000


async def _driver() -> Any:
    return AsyncpgDriver(await asyncpg.connect(os.environ["PEER_URL"]))


def setup() -> None:
    async def go() -> None:
        await Queries(await _driver()).install()

    asyncio.run(go())


def enqueue(calls: Iterable[tuple[int, float]]) -> None:
    async def go() -> None:
        queries = Queries(await _driver())
        for call in calls:
            await queries.enqueue("hit", json.dumps(call).encode(), 0)

    uvloop.run(go())


def enqueue_bulk(calls: Sequence[tuple[int, float]]) -> None:
    async def go() -> None:
        queries = Queries(await _driver())
        for start in range(0, len(calls), AT_ONCE):
            part = calls[start : start + AT_ONCE]
            payloads = [json.dumps(call).encode() for call in part]
            await queries.enqueue(["hit"] * len(part), payloads, [0] * len(part))

    uvloop.run(go())


async def work() -> None:
    queuer = PgQueuer(await _driver())

    @queuer.entrypoint("hit")
    async def hit(job: Any) -> None:
        probe.current().note(*json.loads(job.payload))

    await queuer.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=1))


if __name__ == "__main__":
    uvloop.run(work())
