"""The jobs by which executors are compared. In their own module, so that other workers do not import their needs."""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple

from rota import App, Job

VARIABLE = "BENCHMARKS_HTTP"
"""The environment variable with the address that the request goes to."""
APP = "benchmarks.errands:app"
KINDS = {"async": 1.0, "thread": 1.0, "process": 0.2, "command": 0.05, "http": 0.1}
"""The executors, and the number of executions that each is given, as a share of that of the fastest one."""
BY_HAND = ("process", "command", "http")
NOWHERE = "http://127.0.0.1:9/"
LINE = "x" * 99
logger = logging.getLogger(__name__)


class Errands(NamedTuple):
    """An app and its jobs: nothing, done by each executor, and some that write."""

    app: App
    kinds: dict[str, Job[..., Any, Any]]
    talk: Job[..., Any, Any]
    flood: Job[..., Any, Any]


def build(url: str | None = None) -> Errands:
    app = App("errands", url=url)

    @app.job
    async def noop() -> None:
        """Does nothing."""

    @app.job
    def noop_sync() -> None:
        """Does nothing, in a thread."""

    @app.job(isolation="process")
    def noop_apart() -> None:
        """Does nothing, in a process."""

    @app.job
    async def talk() -> None:
        """Writes ten lines."""
        for number in range(5):
            print("a line that is printed", number)
            logger.warning("a line that is logged: %d", number)

    true = app.command("true", ["/bin/true"])
    ping = app.http("ping", os.environ.get(VARIABLE, NOWHERE), allow=["127.0.0.0/8"])
    flood = app.command("flood", flooding("{bytes}"))
    kinds: dict[str, Job[..., Any, Any]] = {
        "async": noop,
        "thread": noop_sync,
        "process": noop_apart,
        "command": true,
        "http": ping,
    }
    return Errands(app, kinds, talk, flood)


def flooding(count: str) -> list[str]:
    """The command that writes this many bytes, in lines of a hundred."""
    return ["sh", "-c", 'yes "$0" | head -c "$1"', LINE, count]


app = build().app
