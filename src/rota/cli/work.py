"""`rota worker` and `rota dev`: running jobs."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.params import length
from rota.domain.errors import UsageError
from rota.domain.requirement import Offers, offers

if TYPE_CHECKING:
    from rota.clock import Clock
    from rota.config import Settings
    from rota.engine.async_store import AsyncStore

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@click.command()
@click.argument("app", metavar="MODULE:APP")
@click.option("--queues", metavar="A,B", help="Only these queues (default: all of the app).")
@click.option("--concurrency", type=int, metavar="N", help="Executions at once in each process (default: 100).")
@click.option("--processes", metavar="N|N-M", help="Processes that run jobs; from N to M as needed (default: 1).")
@click.option("--pool", "pools", multiple=True, metavar="NAME", help="Only jobs of this pool; may be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="What jobs may require of a worker; repeatable.")
@click.option(
    "--resource", "resources", multiple=True, metavar="NAME=AMOUNT", help="What each process has, such as gpu=1."
)
@click.option("--grace", type=length, metavar="DURATION", help="How long a stop waits for what runs (default: 30s).")
@click.option("--lease", type=length, metavar="DURATION", help="How soon a dead worker is noticed (default: 10s).")
@click.option("--verbose", is_flag=True, help="Log how every execution ends.")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="INFO",
    show_default=True,
    help="What to log on stderr.",
)
@with_database
def worker(
    database: Database,
    app: str,
    queues: str | None,
    concurrency: int | None,
    processes: str | None,
    pools: tuple[str, ...],
    tags: tuple[str, ...],
    resources: tuple[str, ...],
    grace: float | None,
    lease: float | None,
    verbose: bool,
    log_level: str,
) -> None:
    """Run the jobs of an app until told to stop.

    Ctrl-C or SIGTERM stops it in order: it takes no more work and waits for what runs; a second one hastens that.

    \b
    rota worker shop:app --queues mail,default --processes 2-8
    rota worker shop:app --pool cpu --tag eu --resource gpu=2
    """
    settings = _settings(database, concurrency=concurrency, processes=processes, grace_s=grace, lease_s=lease)
    arguments = ["--log-level", log_level.upper(), *(["--verbose"] if verbose else [])]
    given = offers(pools, tags, _amounts(resources))
    supervise(database, app, settings, _queues(queues), arguments, log_level.upper(), given)


@click.command()
@click.argument("app", metavar="MODULE:APP")
@click.option("--concurrency", type=int, metavar="N", help="Executions at once (default: 100).")
@click.option("--processes", metavar="N|N-M", help="Processes that run jobs; from N to M as needed (default: 1).")
@with_database
def dev(database: Database, app: str, concurrency: int | None, processes: str | None) -> None:
    """Run everything for an app on this machine, and say what happens.

    Creates the database if there is none, runs the app's jobs, logs how each execution ends and says what to try
    next. Ctrl-C stops it.

    \b
    rota dev shop:app
    """
    settings = _settings(database, concurrency=concurrency, processes=processes)
    # Children come and go, but only the first should introduce the app: whoever removes this file does.
    handle, banner = tempfile.mkstemp(prefix="rota-dev-")
    os.close(handle)
    try:
        # A developer may go back to earlier code, so the code that was started last must be in force: while this file
        # exists, the deploy of a child takes precedence.
        arguments = ["--verbose", "--banner", banner]
        supervise(database, app, settings, None, arguments, "INFO", Offers(everything=True))
    finally:
        Path(banner).unlink(missing_ok=True)
    output.message("stopped; what was not finished goes on at the next start")


def _amounts(texts: Sequence[str]) -> dict[str, float | str]:
    """NAME=AMOUNT, where the amount is a number or a size."""
    found: dict[str, float | str] = {}
    for text in texts:
        name, separator, amount = text.partition("=")
        if not separator:
            raise UsageError(f"--resource is NAME=AMOUNT, such as gpu=1 or memory=2GB, not {text[:64]!r}")
        if name in found:
            raise UsageError(f"--resource {name} is given twice: say once how much of it there is")
        try:
            found[name] = float(amount)
        except ValueError:
            found[name] = amount
    return found


def supervise(
    database: Database,
    app: str,
    settings: Settings,
    queues: Sequence[str] | None,
    arguments: Sequence[str],
    log_level: str,
    given: Offers,
) -> None:
    """Runs workers of `app` until a signal stops them."""
    import asyncio
    import faulthandler

    from rota import __version__
    from rota.domain import headcount
    from rota.engine import loop
    from rota.engine.heart import MARGIN
    from rota.engine.plan import Plan
    from rota.engine.process import STOPPING, LocalHost
    from rota.engine.supervisor import Supervisor, Unusable
    from rota.executors.process.hiding import hide
    from rota.executors.process.spawner import end_left_behind

    hide()
    database.tell_apps()  # The children find the URL in their environment: everybody can read their arguments.
    logging.basicConfig(level=log_level, format=FORMAT)
    faulthandler.enable()  # A crash in C code would leave nothing in the log.
    _warn_of_strangers()
    plan = Plan(
        command=_child_command(database, app, arguments),
        processes=headcount.parse(settings.processes),
        queues=queues,
        concurrency=settings.concurrency,
        lease_s=settings.lease_s,
        poll_s=settings.poll_s,
        grace_s=settings.grace_s,
        version=__version__,
        quiet_s=settings.quiet_s,
        offers=given,
    )

    async def run() -> None:
        clock, host = database.clock, LocalHost(settings.lease_s * MARGIN / 2)
        await end_left_behind()
        try:
            await Supervisor(plan, clock, host, partial(_connect, settings, clock)).run()
        finally:
            # A repeated signal in the last moments must not turn an orderly end into one by a signal.
            for number in STOPPING:
                asyncio.get_running_loop().remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)

    try:
        loop.run(run())
    except Unusable as error:
        raise UsageError(str(error)) from None


async def _connect(settings: Settings, clock: Clock, url: str) -> AsyncStore:
    """The store of a supervisor."""
    import asyncio

    from rota.engine.async_store import AsyncStore
    from rota.store.opening import open_store
    from rota.store.partitions import open_keeper

    about = partial(open_store, clock=clock, busy_s=settings.busy_s, listen_url=settings.listen_url, purpose="worker")
    return AsyncStore(await asyncio.to_thread(about, url), clock, open_keeper(url, clock), settings.retention_days)


def _warn_of_strangers() -> None:
    """A misspelt setting changes nothing, which nobody would notice."""
    from rota import config

    found = config.strange(os.environ)
    if found:
        words = [f"{name} is no setting" + (f", did you mean {near}?" if near else "") for name, near in found.items()]
        logging.getLogger("rota.settings").warning("in the environment: %s", "; ".join(words))


def _child_command(database: Database, app: str, arguments: Sequence[str]) -> list[str]:
    command = [sys.executable, "-P", "-m", "rota.cli.child", app, "--parent", str(os.getpid())]
    command += ["--url-is-set"] if database.url is not None else []
    command += ["--namespace", database.namespace_option] if database.namespace_option is not None else []
    return [*command, *arguments]


def _settings(database: Database, **overrides: Any) -> Settings:
    from rota import config

    settings = config.load(url=database.url, namespace=database.namespace_option, **overrides)
    if database.url is not None:
        from rota.store.opening import place_of

        place_of(settings.url)
    return settings


def _queues(text: str | None) -> list[str] | None:
    from rota.domain import names

    if text is None:
        return None
    return [names.check(name.strip(), "a queue's name in --queues") for name in text.split(",")]
