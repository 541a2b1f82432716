"""`rota jobs`: the jobs that can be enqueued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.params import json_option, list_group, note_option, owner_option
from rota.domain import duration

if TYPE_CHECKING:
    from rota.views.job import Job


@list_group
@click.option("--app", metavar="NAME", help="Only jobs of this app.")
@json_option
@with_database
def jobs(database: Database, app: str | None, as_json: bool) -> None:
    """List jobs with their parameters; pause and resume them.

    A job is known once a worker or a program of its app has used the database.

    \b
    rota jobs --app shop
    rota jobs pause send --note "the mail server is down"
    """
    from rota.views import job as views

    found = database.read(views.jobs, database.namespace, app)
    empty = "no jobs are known yet: start `rota dev MODULE:APP` or `rota worker MODULE:APP` once"
    output.listing(found, _COLUMNS, as_json=as_json, empty=empty)


@jobs.command()
@click.argument("job")
@owner_option
@note_option
@with_database
def pause(database: Database, job: str, app: str | None, note: str) -> None:
    """Start no more executions of a job; new ones wait, running ones continue.

    \b
    rota jobs pause send --note "the mail server is down"
    """
    from rota.ops import job_pauses
    from rota.views import lookup

    whose = database.read(lookup.app_of_job, database.namespace, job, app)
    changed = database.transact(job_pauses.pause, database.namespace, whose, job, database.actor, note)
    output.message(f"job {whose}.{job} {'is paused' if changed else 'was paused already'}")


@jobs.command()
@click.argument("job")
@owner_option
@with_database
def resume(database: Database, job: str, app: str | None) -> None:
    """Start executions of a paused job again, with those that have waited.

    \b
    rota jobs resume send
    """
    from rota.ops import job_pauses
    from rota.views import lookup

    whose = database.read(lookup.app_of_job, database.namespace, job, app)
    changed = database.transact(job_pauses.resume, database.namespace, whose, job, database.actor)
    output.message(f"job {whose}.{job} {'resumed' if changed else 'was not paused'}")


def _state(job: Job) -> str:
    if job.paused is None:
        return ""
    return f"paused by {job.paused.by}" + (f": {job.paused.note}" if job.paused.note else "")


def _bound(value_s: float | None) -> str:
    """A declared duration: `30s`, not the `30.0s` of a measured one."""
    if not value_s:
        return "-"
    return f"{value_s:g}s" if 1 <= value_s < 60 else duration.words(value_s)


_COLUMNS: output.Columns[Job] = {
    "app": lambda job: job.app,
    "job": lambda job: f"{job.name}({parameters(job.parameters)})",
    "queue": lambda job: job.queue,
    "attempts": lambda job: str(job.retry.get("attempts", "")),
    "timeout": lambda job: _bound(job.timeout),
    "state": _state,
    "description": lambda job: job.description,
}


def parameters(known: dict[str, dict[str, Any]]) -> str:
    """A job's parameters as one would write them; an optional one ends in `?`."""
    required_first = sorted(known.items(), key=lambda parameter: not parameter[1]["required"])
    return ", ".join("…" if about.get("others") else _parameter(name, about) for name, about in required_first)


def _parameter(name: str, about: dict[str, Any]) -> str:
    return f"{name}{'' if about['required'] else '?'}" + ("" if about["type"] == "any" else f": {about['type']}")
