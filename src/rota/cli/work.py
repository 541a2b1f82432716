"""`rota worker` and `rota dev`: run the jobs of an app."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from rota import config
from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.options import length
from rota.config import Settings
from rota.domain import names
from rota.domain.errors import UsageError
from rota.domain.requirement import Offers, offers
from rota.store.opening import place_of

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@click.command()
@click.argument("app", metavar="MODULE:APP")
@click.option("--queues", metavar="A,B", help="Only these queues (default: all of the app).")
@click.option("--concurrency", type=int, metavar="N", help="Executions at once in each process (default: 100).")
@click.option("--processes", metavar="N|N-M", help="Processes that run jobs; from N to M as needed (default: 1).")
@click.option("--pool", "pools", multiple=True, metavar="NAME", help="Only jobs of this pool; may be repeated.")
@click.option(
    "--tag", "tags", multiple=True, metavar="NAME", help="A tag that jobs may require of a worker; may be repeated."
)
@click.option(
    "--resource", "resources", multiple=True, metavar="NAME=AMOUNT", help="A resource of each process, such as gpu=1."
)
@click.option(
    "--grace", type=length, metavar="DURATION", help="How long a stop waits for running executions (default: 30s)."
)
@click.option("--lease", type=length, metavar="DURATION", help="How soon a dead worker is noticed (default: 10s).")
@click.option("--verbose", is_flag=True, help="Log how every execution and every run ends.")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="INFO",
    metavar="LEVEL",
    help="The lowest level to log on stderr: debug, info (the default), warning, error.",
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
    """Run the jobs of an app until Ctrl-C or SIGTERM.

    It then claims no more executions, waits for running ones until the grace period ends, and returns the rest to their
    queues. A second signal ends the wait.

    \b
    rota worker shop:app --queues mail,default --processes 2-8
    rota worker shop:app --pool cpu --tag eu --resource gpu=2
    """
    from rota.cli.supervise import supervise  # lazy: `rota --help` does not need the engine

    settings = _settings(database, concurrency=concurrency, processes=processes, grace_s=grace, lease_s=lease)
    given = offers(pools, tags, _amounts(resources))
    arguments = ["--log-level", log_level.upper()]
    supervise(database, app, settings, _queues(queues), arguments, log_level.upper(), given, verbose=verbose)
    logging.getLogger("rota.engine").info("stopped")


@click.command()
@click.argument("app", metavar="MODULE:APP")
@click.option("--concurrency", type=int, metavar="N", help="Executions at once (default: 100).")
@click.option("--processes", metavar="N|N-M", help="Processes that run jobs; from N to M as needed (default: 1).")
@with_database
def dev(database: Database, app: str, concurrency: int | None, processes: str | None) -> None:
    """Run an app on this machine for development; log executions and runs.

    Creates the database if there is none, runs the app's jobs, and prints commands to try next. Ctrl-C stops it.

    \b
    rota dev shop:app
    """
    from rota.cli.supervise import supervise  # lazy: as above

    settings = _settings(database, concurrency=concurrency, processes=processes)
    # Children are replaced, but only the first should print the banner: the child that removes this file prints it.
    handle, banner = tempfile.mkstemp(prefix="rota-dev-")
    os.close(handle)
    try:
        # A developer may return to earlier code, so the code that was started last must be in force: while this file
        # exists, the deploy of a child takes precedence.
        offers = Offers(everything=True)
        supervise(database, app, settings, None, ["--banner", banner], "INFO", offers, verbose=True)
    finally:
        Path(banner).unlink(missing_ok=True)
    output.message("stopped; unfinished executions continue at the next start")


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


def _settings(database: Database, **overrides: Any) -> Settings:
    settings = config.load(**database.given, **overrides)
    if "url" in database.given:
        place_of(settings.url)  # Refuses a database in memory, which no other process could use.
    return settings


def _queues(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [names.check(name.strip(), "a queue's name in --queues") for name in text.split(",")]
