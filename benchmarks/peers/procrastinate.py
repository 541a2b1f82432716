"""procrastinate on PostgreSQL, as its documentation sets it up, with a hundred jobs at once in each process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence

from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]

from benchmarks import probe

COMMAND = ["procrastinate", "--app=benchmarks.peers.procrastinate.app", "worker", "-c", "100"]
PROCESSES = 2
SHARE = 0.02
ENDED = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"

app = App(connector=PsycopgConnector(conninfo=os.environ["PEER_URL"]))


@app.task(name="hit")
async def hit(number: int, since: float) -> None:
    probe.current().note(number, since)


def setup() -> None:
    async def go() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(go())


def enqueue(calls: Iterable[tuple[int, float]]) -> None:
    async def go() -> None:
        async with app.open_async():
            for number, since in calls:
                await hit.defer_async(number=number, since=since)

    asyncio.run(go())


def enqueue_bulk(calls: Sequence[tuple[int, float]]) -> None:
    async def go() -> None:
        async with app.open_async():
            await hit.batch_defer_async(*({"number": number, "since": since} for number, since in calls))

    asyncio.run(go())
