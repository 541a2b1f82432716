"""`rota executions`, `rota cancel` and `rota retry`: list executions, stop them, and run them again."""

from __future__ import annotations

from typing import Any

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.failure import UNSUCCESSFUL
from rota.cli.options import app_option, filter_options, json_option, page_options
from rota.domain.status import Status
from rota.ids import IdSource
from rota.ops import control
from rota.store.reader import Filter
from rota.views import execution as views
from rota.views import lookup


@click.command()
@click.option(
    "--status",
    type=click.Choice([status.value for status in Status], case_sensitive=False),
    callback=lambda _context, _option, value: value and Status(value),
    metavar="STATUS",
    help=f"Only those that are {', '.join(status.value for status in Status)}.",
)
@app_option
@filter_options
@page_options
@json_option
@with_database
def executions(database: Database, as_json: bool, **wanted: Any) -> None:
    """List executions, newest first.

    \b
    rota executions --status failed --since 2h
    rota executions --job send --json | jq '.[].executionId'
    """
    found = database.read(views.executions, database.namespace, views.check(Filter(**wanted)))
    more = f"--before {found.items[-1].execution_id}" if found.has_more else ""
    output.listing(found.items, _COLUMNS, as_json=as_json, empty="no executions match", more=more)


_COLUMNS: output.Columns[views.Execution] = {
    "id": lambda one: one.execution_id,
    "status": lambda one: one.status.value,
    "job": lambda one: f"{one.app}.{one.job}",
    "queue": lambda one: one.queue,
    "attempts": lambda one: one.attempt_count,
    "created": lambda one: one.created_at,
    "took": lambda one: text.length(one.started_at, one.completed_at or text.now()),
    "reason": lambda one: "" if one.reason in (None, "completed") else one.reason,
}


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@json_option
@with_database
def cancel(database: Database, ids: tuple[str, ...], as_json: bool) -> None:
    """Cancel executions; a running one is asked to stop.

    Prints each id and its status afterwards. The exit code is 1 if one of them had already ended otherwise.

    \b
    rota cancel 0197a3c2 0197a3c3
    """
    found = database.read(lookup.execution_ids, database.namespace, ids)
    statuses = {id: database.transact(control.cancel, database.namespace, id, database.actor) for id in found}
    if as_json:
        output.print_json_rows(views.ExecutionStatus(execution_id=id, status=after) for id, after in statuses.items())
    else:
        print("\n".join(f"{id}  {status}" for id, status in statuses.items()))
    for id, status in statuses.items():
        if status is Status.RUNNING:
            output.message(f"{id} was asked to stop")
        elif status is not Status.CANCELLED:
            output.message(f"{id} had already ended: {status}")
    if any(status not in (Status.RUNNING, Status.CANCELLED) for status in statuses.values()):
        click.get_current_context().exit(UNSUCCESSFUL)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@json_option
@with_database
def retry(database: Database, ids: tuple[str, ...], as_json: bool) -> None:
    """Run ended executions again, each as a new execution.

    Prints the id of each new execution, which is linked to the old one. A dead letter is no longer one afterwards.

    \b
    rota retry 0197a3c2
    """
    found = database.read(lookup.execution_ids, database.namespace, ids)
    database.read(views.check_ended, database.namespace, found)
    source = IdSource(database.clock)
    made = [
        (database.transact(control.repeat, database.namespace, id, source.new(), database.actor), id) for id in found
    ]
    if as_json:
        output.print_json_rows(views.Replayed(execution_id=new, replay_of=old) for new, old in made)
    else:
        print("\n".join(new for new, _ in made))
