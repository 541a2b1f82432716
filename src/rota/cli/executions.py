"""`rota executions`, `cancel`, `run-now` and `replay`: list executions, stop them, and run them early or again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.failure import UNSUCCESSFUL
from rota.cli.options import filter_options, ids_argument, json_option, page_options
from rota.domain.status import TERMINAL, Status
from rota.ids import IdSource
from rota.ops import control
from rota.store.port import Tx
from rota.store.reader import Filter
from rota.views import execution as views
from rota.views import lookup
from rota.views.step import step_number


@click.command()
@click.option(
    "--status",
    type=click.Choice([status.value for status in Status], case_sensitive=False),
    callback=lambda _context, _option, value: value and Status(value),
    metavar="STATUS",
    help=f"Only those that are {', '.join(status.value for status in Status)}.",
)
@filter_options
@click.option("--run", metavar="ID", help="Only the steps of this run.")
@click.option("--step", metavar="NAME", help="With --run: only this step; of a map all its items.")
@page_options
@json_option
@with_database
def executions(database: Database, as_json: bool, run: str | None, step: str | None, **wanted: Any) -> None:
    """List executions, newest first.

    A run of a workflow is an execution, and so is each of its steps; `rota runs` lists runs alone.

    \b
    rota executions --status failed --since 2h
    rota executions --job send --json | jq '.[].executionId'
    rota executions --run 1a2b3c4d --step transform --status failed
    """
    if step is not None and run is None:
        raise click.UsageError("--step names a step of a run: add --run ID")
    full = None if run is None else database.read(lookup.run_id, database.namespace, run)
    number = None if step is None else database.read(step_number, database.namespace, full or "", step)
    wants = views.check(Filter(run=full, step=number, **wanted))
    found = database.read(views.executions, database.namespace, wants)
    more = f"--before {found.items[-1].execution_id}" if found.has_more else ""
    columns = output.of_one_app(found.items, _columns(found.items))
    output.listing(
        found.items, columns, as_json=as_json, empty="no executions match", more=more, spare=_SPARE, whole="job"
    )


def _columns(rows: Sequence[views.Execution]) -> output.Columns[views.Execution]:
    if any(one.run_id is not None for one in rows):
        return _COLUMNS
    return {name: cell for name, cell in _COLUMNS.items() if name not in ("run", "step")}


_COLUMNS: output.Columns[views.Execution] = {
    "id": lambda one: one.execution_id,
    "status": lambda one: one.status.value,
    "job": lambda one: f"{one.app}.{one.job}",
    "run": lambda one: text.short_id(one.run_id or ""),
    "step": lambda one: _step(one),
    "queue": lambda one: one.queue,
    "attempts": lambda one: one.attempt_count,
    "created": lambda one: one.created_at,
    "due": lambda one: one.run_at if one.status in (Status.SCHEDULED, Status.RETRYING) else None,
    "took": lambda one: text.length(one.started_at, one.completed_at or text.now()),
    "reason": lambda one: _reason(one),
}
_SPARE = ("queue", "attempts", "took", "run")


@click.command()
@ids_argument
@json_option
@with_database
def cancel(database: Database, ids: tuple[str, ...], as_json: bool) -> None:
    """Cancel executions; a running one is asked to stop.

    Prints each id and its status afterwards. The exit code is 1 if one of them had already ended otherwise.

    \b
    rota cancel 1a2b3c4d 5e6f7a8b
    """
    fine = {Status.CANCELLED: "", Status.RUNNING: "was asked to stop"}
    _change(database, control.cancel, ids, fine, "had already ended: {}", as_json=as_json)


@click.command("run-now")
@ids_argument
@json_option
@with_database
def run_now(database: Database, ids: tuple[str, ...], as_json: bool) -> None:
    """Start executions now that are scheduled or retrying.

    They are queued before their time, and start as soon as a worker has a free slot. Prints each id and its status
    afterwards. The exit code is 1 if one of them has ended or waits for a paused job.

    \b
    rota run-now 1a2b3c4d
    """
    fine = {Status.QUEUED: "", Status.RUNNING: "is running already"}
    ended = "was not started: it has ended ({}); `rota replay` runs it again, as a new execution"
    otherwise = "was not started: it is {}; `rota show` says why"
    _change(database, control.run_now, ids, fine, ended, otherwise, as_json=as_json)


@click.command()
@ids_argument
@json_option
@with_database
def replay(database: Database, ids: tuple[str, ...], as_json: bool) -> None:
    """Run ended executions again, each as a new execution.

    Prints the id of each new execution, which is linked to the old one. A replayed dead letter is taken off the list.
    Of a run of a workflow, the steps that succeeded are kept, as by `rota run retry`.

    \b
    rota replay 1a2b3c4d
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


def _step(one: views.Execution) -> str:
    return "" if one.step is None else one.step + ("" if one.index is None else f"[{one.index}]")


def _reason(one: views.Execution) -> str:
    """The error comes before the code, which a narrow terminal cuts off."""
    code = "" if one.status is Status.SUCCESS or one.reason == one.status else one.reason or ""
    error = text.first_line(one.error_message or "")
    return f"{error} ({code})" if error and code else error or code


def _change(
    database: Database,
    change: Callable[[Tx, str, str, str], Status],
    ids: tuple[str, ...],
    fine: Mapping[Status, str],
    ended: str,
    otherwise: str = "is {}",
    *,
    as_json: bool,
) -> None:
    """Changes each execution, prints its status afterwards, and fails if a status is not among the fine ones."""
    found = database.read(lookup.execution_ids, database.namespace, ids)
    statuses = {id: database.transact(change, database.namespace, id, database.actor) for id in found}
    if as_json:
        output.print_json_rows(views.ExecutionStatus(execution_id=id, status=after) for id, after in statuses.items())
    else:
        print("\n".join(f"{id}  {status}" for id, status in statuses.items()))
    for id, status in statuses.items():
        if words := fine.get(status, ended if status in TERMINAL else otherwise).format(status):
            output.message(f"{id} {words}")
    if not fine.keys() >= set(statuses.values()):
        click.get_current_context().exit(UNSUCCESSFUL)
