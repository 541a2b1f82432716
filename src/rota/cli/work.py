"""Starting a supervisor from a command."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

import rota
from rota.clock import SystemClock
from rota.config import Settings
from rota.domain.errors import UsageError
from rota.engine.supervisor import Plan, Supervisor, Unusable
from rota.store.opening import open_store


def supervise(
    app: str, settings: Settings, queues: Sequence[str] | None, *, verbose: bool, url: str | None, namespace: str | None
) -> None:
    """Runs workers of `app` until a signal stops them. `url` and `namespace` are what the command line said."""
    command = [sys.executable, "-m", "rota.cli.child", app, "--parent", str(os.getpid())]
    for flag, value in (("--url", url), ("--namespace", namespace)):
        if value is not None:
            command += [flag, value]
    if verbose:
        command.append("--verbose")
    plan = Plan(
        command=command,
        processes=settings.processes,
        queues=queues,
        concurrency=settings.concurrency,
        lease_s=settings.lease_s,
        poll_s=settings.poll_s,
        grace_s=settings.grace_s,
        version=rota.__version__,
    )
    clock = SystemClock()

    async def run() -> None:
        await Supervisor(plan, clock, lambda url: open_store(url, clock, busy_s=settings.busy_s)).run()

    try:
        asyncio.run(run())
    except Unusable as error:
        raise UsageError(str(error)) from None
