"""`rota jobs`: what can be enqueued."""

from __future__ import annotations

from typing import Any

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.params import json_option
from rota.domain import duration


@click.command()
@click.option("--app", metavar="NAME", help="Only jobs of this app.")
@json_option
@with_database
def jobs(database: Database, app: str | None, as_json: bool) -> None:
    """List jobs that can be enqueued, with their parameters.

    A job is known once a worker or a program of its app has used the database.

    \b
    rota jobs --app shop
    """
    from rota.store import reader

    rows = [row for row in database.read(reader.jobs, database.namespace) if app in (None, row.app)]
    known = [{"app": row.app, **output.decoded(row.definition)} for row in rows]
    if as_json:
        output.print_json_rows(known)
    elif known:
        output.table(list(COLUMNS), [[cell(job) for cell in COLUMNS.values()] for job in known])
    else:
        output.message("no jobs are known yet: start `rota dev MODULE:APP` or `rota worker MODULE:APP` once")


COLUMNS: output.Columns[dict[str, Any]] = {
    "app": lambda job: str(job["app"]),
    "job": lambda job: f"{job['name']}({parameters(job['parameters'])})",
    "queue": lambda job: str(job["queue"]),
    "attempts": lambda job: str(job["retry"].get("attempts", "")),
    "timeout": lambda job: duration.words(job["timeout_s"]) if job["timeout_s"] else "-",
    "description": lambda job: str(job["description"]),
}


def parameters(known: dict[str, dict[str, Any]]) -> str:
    """A job's parameters as one would write them; an optional one ends in `?`."""
    required_first = sorted(known.items(), key=lambda parameter: not parameter[1]["required"])
    return ", ".join(
        f"{name}{'' if about['required'] else '?'}" + ("" if about["type"] == "any" else f": {about['type']}")
        for name, about in required_first
    )
