"""`rota`: every command, and how they fail."""

from __future__ import annotations

import logging
import sys

import click

from rota import config
from rota.cli.work import supervise
from rota.domain.errors import RotaError


@click.group()
def cli() -> None:
    pass


@cli.command()
@click.argument("app")
@click.option("--queues")
@click.option("--concurrency", type=int)
@click.option("--processes", type=int)
@click.option("--verbose", is_flag=True)
def worker(app: str, queues: str | None, concurrency: int | None, processes: int | None, verbose: bool) -> None:
    settings = config.load(concurrency=concurrency, processes=processes)
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    supervise(app, settings, queues.split(",") if queues else None, verbose=verbose, url=None, namespace=None)


def main() -> None:
    try:
        cli()
    except RotaError as error:
        print(f"rota: {error}", file=sys.stderr)
        sys.exit(2)
