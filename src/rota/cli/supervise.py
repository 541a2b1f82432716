"""Runs the supervisor of a worker in this process."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial

from rota import __version__, config
from rota.cli.database import Database
from rota.cli.run_log import RunLog
from rota.cli.text import LOG_FORMAT
from rota.clock import Clock
from rota.config import Settings
from rota.domain import headcount
from rota.domain.errors import UsageError
from rota.domain.requirement import Offers
from rota.engine import loop
from rota.engine.async_store import AsyncStore
from rota.engine.heart import MARGIN
from rota.engine.process import STOPPING, LocalHost
from rota.engine.supervisor import Supervisor, Unusable
from rota.engine.worker_settings import WorkerSettings
from rota.executors.process.protect_secrets import hide
from rota.executors.process.spawner import end_left_behind
from rota.store.opening import open_store
from rota.store.partitions import open_keeper


def supervise(
    database: Database,
    app: str,
    settings: Settings,
    queues: Sequence[str] | None,
    arguments: Sequence[str],
    log_level: str,
    offers: Offers,
    *,
    verbose: bool,
) -> bool:
    """Runs workers of `app` until a signal stops them; returns False if all of them were drained instead.

    `verbose` logs every execution and run.
    """
    hide()
    database.export()  # Children read the URL from their environment: every user can read their arguments.
    logging.basicConfig(level=log_level, format=LOG_FORMAT)
    faulthandler.enable()  # A crash in C code would leave nothing in the log.
    _warn_of_unknown_settings()
    worker_settings = WorkerSettings(
        command=_child_command(database, app, [*arguments, *(["--verbose"] if verbose else [])]),
        processes=headcount.parse(settings.processes),
        queues=queues,
        concurrency=settings.concurrency,
        lease_s=settings.lease_s,
        poll_s=settings.poll_s,
        grace_s=settings.grace_s,
        version=__version__,
        quiet_s=settings.quiet_s,
        max_log_bytes=settings.max_log_bytes,
        offers=offers,
    )

    async def run() -> bool:
        clock, host = database.clock, LocalHost(settings.lease_s * MARGIN / 2)
        await end_left_behind()
        try:
            return await Supervisor(worker_settings, clock, host, partial(_connect, settings, clock, verbose)).run()
        finally:
            # A repeated signal must not kill the process in the last moments of an orderly stop.
            for number in STOPPING:
                asyncio.get_running_loop().remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)

    try:
        return loop.run(run())
    except Unusable as error:
        raise UsageError(str(error)) from None


async def _connect(settings: Settings, clock: Clock, verbose: bool, url: str) -> AsyncStore:
    """Opens the store of a supervisor."""
    connect = partial(open_store, busy_s=settings.busy_s, listen_url=settings.listen_url, purpose="worker")
    store = await asyncio.to_thread(connect, url, clock)
    RunLog(store, verbose=verbose)
    keeper = open_keeper(url, clock)
    return AsyncStore(store, clock, keeper, settings.retention_days, settings.max_payload_bytes)


def _warn_of_unknown_settings() -> None:
    """Without a warning, a misspelt setting would be ignored silently."""
    found = config.unknown_variables(os.environ)
    if found:
        hints = {name: f", did you mean {near}?" if near else "" for name, near in found.items()}
        words = [f"{name} is not a setting{hint}" for name, hint in hints.items()]
        logging.getLogger("rota.settings").warning("in the environment: %s", "; ".join(words))


def _child_command(database: Database, app: str, arguments: Sequence[str]) -> list[str]:
    command = [sys.executable, "-P", "-m", "rota.cli.child_main", app, "--parent", str(os.getpid())]
    return [*command, *(f"--given={name}" for name in database.given), *arguments]
