"""`rota executions`: lists executions, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import filter_options, json_option, page_options
from rota.domain.status import Status

if TYPE_CHECKING:
    from datetime import datetime

    from rota.store.reader import Filter
    from rota.views.execution import Execution


@click.command()
@click.option(
    "--status",
    type=click.Choice([status.value for status in Status], case_sensitive=False),
    metavar="STATUS",
    help=f"Only those that are {', '.join(status.value for status in Status)}.",
)
@click.option("--app", metavar="NAME", help="Only those of this app.")
@filter_options
@page_options
@json_option
@with_database
def executions(database: Database, status: str | None, app: str | None, wanted: Filter, as_json: bool) -> None:
    """List executions, newest first.

    \b
    rota executions --status failed --since 2h
    rota executions --job send --json | jq '.[].executionId'
    """
    from msgspec.structs import replace

    from rota.views import execution as views

    wanted = views.check(replace(wanted, status=Status(status) if status else None, app=app))
    found = database.read(views.executions, database.namespace, wanted)
    columns = _columns(database.now())
    empty = "no executions match"
    output.paged(found, columns, as_json=as_json, empty=empty, more=lambda last: f"--before {last.execution_id}")


def _columns(now: datetime) -> output.Columns[Execution]:
    return {
        "id": lambda one: one.execution_id,
        "status": lambda one: one.status.value,
        "job": lambda one: f"{one.app}.{one.job}",
        "queue": lambda one: one.queue,
        "attempts": lambda one: str(one.attempt_count),
        "created": lambda one: text.ago(one.created_at, now),
        "took": lambda one: text.length(one.started_at, one.completed_at or now),
        "reason": lambda one: "" if one.reason in (None, "completed") else one.reason,
    }
