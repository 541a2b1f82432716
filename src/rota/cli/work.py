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
from rota.domain.served import ALL_APPS
from rota.store.opening import place_of

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


directory_option = click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    metavar="FOLDER",
    help="Where commands of the HTTP API run that name no directory (default: this folder).",
)


@click.command()
@click.argument("app", metavar="[MODULE:APP]", required=False)
@click.option("--queues", metavar="A,B", help="Only these queues (default: all of the app).")
@click.option(
    "--namespaces", metavar="A,B", help="Without MODULE:APP: run the jobs of all these namespaces, not of --namespace."
)
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
@directory_option
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
    app: str | None,
    queues: str | None,
    namespaces: str | None,
    concurrency: int | None,
    processes: str | None,
    pools: tuple[str, ...],
    tags: tuple[str, ...],
    resources: tuple[str, ...],
    grace: float | None,
    lease: float | None,
    directory: str | None,
    verbose: bool,
    log_level: str,
) -> None:
    """Run the jobs of an app until Ctrl-C or SIGTERM.

    Without MODULE:APP it runs the commands and requests that the HTTP API has defined, of all apps.

    It then claims no more executions, waits for running ones until the grace period ends, and returns the rest to their
    queues. A second signal ends the wait.

    \b
    rota worker shop:app --queues mail,default --processes 2-8
    rota worker shop:app --pool cpu --tag eu --resource gpu=2
    rota worker
    rota worker --namespaces billing,shipping
    """
    from rota.cli.supervise import supervise  # lazy: `rota --help` does not need the engine

    others = _namespaces(database, app, namespaces)
    settings = _settings(database, concurrency=concurrency, processes=processes, grace_s=grace, lease_s=lease)
    given = offers(pools, tags, _amounts(resources))
    arguments = ["--log-level", log_level.upper(), *_directory(app, directory), *(f"--also={name}" for name in others)]
    supervise(
        database, app or ALL_APPS, settings, _queues(queues), arguments, log_level.upper(), given, verbose=verbose
    )
    logging.getLogger("rota.engine").info("stopped")


@click.command()
@click.argument("app", metavar="[MODULE:APP]", required=False)
@click.option("--concurrency", type=int, metavar="N", help="Executions at once (default: 100).")
@click.option("--processes", metavar="N|N-M", help="Processes that run jobs; from N to M as needed (default: 1).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port of the HTTP API (default: 8080).")
@directory_option
@with_database
def dev(
    database: Database,
    app: str | None,
    concurrency: int | None,
    processes: str | None,
    port: int | None,
    directory: str | None,
) -> None:
    """Run an app on this machine for development; log executions and runs.

    Creates the database if there is none, runs the app's jobs, serves the HTTP API, runs the commands and requests
    that it defines, and prints commands to try next. Without MODULE:APP only the API has jobs. Ctrl-C stops it.

    \b
    rota dev shop:app
    rota dev --port 9000
    """
    from rota.cli.dev_services import services, wait_for_stop  # lazy: as above
    from rota.cli.supervise import supervise  # lazy: as above

    settings = _settings(database, concurrency=concurrency, processes=processes)
    # Children are replaced, but only the first should print the banner: the child that removes this file prints it.
    handle, banner = tempfile.mkstemp(prefix="rota-dev-")
    os.close(handle)
    # A developer may return to earlier code, so the code that was started last must be in force: while this file
    # exists, the deploy of a child takes precedence.
    arguments = ["--banner", banner] if app is not None else _directory(app, directory)
    try:
        with services(database, port, directory, has_app=app is not None):
            offers = Offers(everything=True)
            if not supervise(database, app or ALL_APPS, settings, None, arguments, "INFO", offers, verbose=True):
                wait_for_stop()
    finally:
        Path(banner).unlink(missing_ok=True)
    output.message("stopped; unfinished executions continue at the next start")


def _namespaces(database: Database, app: str | None, text: str | None) -> list[str]:
    """Makes the first namespace that of the worker, and returns the others."""
    if text is None:
        return []
    if app is not None:
        raise UsageError("--namespaces is for a worker without MODULE:APP; an app belongs to one namespace")
    if "namespace" in database.given:
        raise UsageError("give --namespace or --namespaces, not both")
    first, *others = dict.fromkeys(names.check(name.strip(), "a namespace in --namespaces") for name in text.split(","))
    database.given["namespace"] = first
    return others


def _directory(app: str | None, directory: str | None) -> list[str]:
    if directory is not None and app is not None:
        raise UsageError("--directory is for a worker without MODULE:APP; jobs of an app name their own directory")
    return [] if directory is None else ["--directory", directory]


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
