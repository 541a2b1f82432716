"""The jobs that are measured. The worker imports `benchmarks.jobs:app`; the measuring process makes its own app."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple

from benchmarks import probe
from rota import App, Job


class Jobs(NamedTuple):
    """An app and its jobs."""

    app: App
    noop: Job[[], None, Coroutine[Any, Any, None]]
    noop_sync: Job[[], None, None]
    stamp: Job[[int, float], None, Coroutine[Any, Any, None]]
    nap: Job[[int, float], None, Coroutine[Any, Any, None]]
    echo: Job[[int], int, Coroutine[Any, Any, int]]


def build(url: str | None = None) -> Jobs:
    """The app on the database at `url`, or at ROTA_URL."""
    app = App("bench", url=url)

    @app.job
    async def noop() -> None:
        """Does nothing."""

    @app.job
    def noop_sync() -> None:
        """Does nothing, in a thread."""

    @app.job
    async def stamp(number: int, since: float) -> None:
        """Tells how long after `since` it began, as a peer's task does; only that it ran if `since` is 0."""
        probe.current().note(number, since)

    @app.job
    async def nap(number: int, seconds: float) -> None:
        """Sleeps, and tells how much later than wanted it woke."""
        wake_at = time.time() + seconds
        await asyncio.sleep(seconds)
        probe.current().note(number, wake_at)

    @app.job
    async def echo(number: int) -> int:
        return number

    return Jobs(app, noop, noop_sync, stamp, nap, echo)


app = build().app
