"""`rota runs`: lists the runs of workflows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import json_option, page_options, past
from rota.domain import duration
from rota.domain.status import Status
from rota.store.run_reader import PAUSED, STOPPING, UNANSWERED, UNDOING, RunFilter
from rota.views import lookup
from rota.views import run as views
from rota.views.run import RunSummary

STATUSES = [
    *(status.value for status in Status if status is not Status.RETRYING),
    PAUSED,
    STOPPING,
    UNDOING,
    UNANSWERED,
]


@click.command()
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow, those too that are steps of other runs.")
@click.option("--app", metavar="NAME", help="Only runs of this app.")
@click.option(
    "--status",
    type=click.Choice(STATUSES, case_sensitive=False),
    metavar="STATUS",
    help=f"Only those that are {', '.join(STATUSES)}.",
)
@click.option("--since", type=past, metavar="TIME", help="Only those since then: 2h (ago), 2030-01-31T09:00Z.")
@click.option("--parent", metavar="ID", help="Only the runs of sub-workflows that are steps of this run.")
@page_options
@json_option
@with_database
def runs(database: Database, as_json: bool, parent: str | None, **wanted: Any) -> None:
    """List runs of workflows, newest first.

    Runs that are steps of other runs are listed only with --parent, --workflow or --status unanswered, which lists
    runs with an open approval.

    \b
    rota runs --status failed --since 1d
    rota runs --status unanswered
    rota runs --workflow etl
    """
    above = None if parent is None else database.read(lookup.run_id, database.namespace, parent)
    found = database.read(views.runs, database.namespace, RunFilter(parent=above, **wanted))
    more = f"--before {found.items[-1].run_id}" if found.has_more else ""
    output.listing(
        found.items, _columns(found.items, above), as_json=as_json, empty="no runs match", more=more, spare=_SPARE
    )


def _status(one: RunSummary) -> str:
    if one.is_undoing:
        return UNDOING
    if one.completed_at is None and one.stopping is not None:
        return STOPPING
    return PAUSED if one.paused is not None else one.status.value


def _about(one: RunSummary) -> str:
    """One text about a run. For an undo: the run that it undoes. For a paused run: who paused it, and why. For an open
    run: the texts of its open approvals, or the steps that wait. For a failed run: the failed step and the error."""
    if one.undo_of is not None:
        return f"undo of run {text.short_id(one.undo_of)}"
    if one.paused is not None:
        return text.pause(one.paused)
    if one.status is Status.SUCCESS:
        return ""
    if one.questions:
        return "; ".join(one.questions)
    if one.waiting_steps and one.failed_step is None and one.stopping is None:
        return f"waits in {', '.join(one.waiting_steps)}"
    if one.failed_step is not None:
        error = text.first_line(one.error_message or "").removeprefix("StepFailed: ")
        return error if one.failed_step in error else ": ".join(filter(None, [one.failed_step, error]))
    return text.first_line(one.error_message or "") or one.stopping or (one.reason if one.completed_at else "") or ""


def _parent(one: RunSummary) -> str:
    return "" if one.parent_run_id is None else f"{text.short_id(one.parent_run_id)} {_step(one)}"


def _step(one: RunSummary) -> str:
    return f"{one.parent_step}{'' if one.parent_index is None else f'[{one.parent_index}]'}"


def _columns(rows: Sequence[RunSummary], parent: str | None) -> output.Columns[RunSummary]:
    """With `parent`, all runs are steps of that run, so its id is left out. On a terminal the app is left out, too, if
    it is the same in all rows."""
    columns = dict(_COLUMNS)
    if parent is not None:
        columns["step of"] = _step
    if sys.stdout.isatty() and len({one.app for one in rows}) == 1:
        columns["workflow"] = lambda one: one.workflow
    return columns


_COLUMNS: output.Columns[RunSummary] = {
    "id": lambda one: one.run_id,
    "workflow": lambda one: f"{one.app}.{one.workflow}",
    "status": _status,
    "steps": lambda one: f"{one.ended_count:,}/{one.step_count:,}",
    "version": lambda one: one.version,
    "scheduled for": lambda one: one.scheduled_for,
    "started": lambda one: one.started_at,
    "took": lambda one: None if one.duration is None else duration.words(one.duration.total_seconds()),
    "step of": _parent,
    "about": _about,
}
_SPARE = ("version", "scheduled for", "took")
