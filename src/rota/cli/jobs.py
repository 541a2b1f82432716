"""`rota jobs`: list the jobs that can be enqueued, pause and resume them."""

from __future__ import annotations

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import app_option, json_option, list_group, note_option, owner_option
from rota.domain import duration, job_parameters
from rota.domain.dependency import CountedEnd, JobRef, label
from rota.ops import job_pauses
from rota.views import job as views
from rota.views import lookup


@list_group
@app_option
@json_option
@with_database
def jobs(database: Database, app: str | None, as_json: bool) -> None:
    """List jobs with their parameters; pause and resume them.

    A job is known once a worker or a program of its app has used the database.

    \b
    rota jobs --app shop
    rota jobs pause send --note "the mail server is down"
    """
    found = database.read(views.jobs, database.namespace, app)
    empty = "no jobs are known yet: start `rota dev MODULE:APP` or `rota worker MODULE:APP` once"
    spare = ["description", "timeout", "attempts", "queue", *(["app"] if len({job.app for job in found}) == 1 else [])]
    empty = text.none_of(app, "jobs", empty)
    output.listing(found, _COLUMNS, as_json=as_json, empty=empty, spare=spare, whole="job")


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
    owner, name = database.read(lookup.job, database.namespace, job, app)
    changed = database.transact(job_pauses.pause, database.namespace, owner, name, database.actor, note)
    output.message(f"job {owner}.{name} {'is paused' if changed else 'was paused already'}")


@jobs.command()
@click.argument("job")
@owner_option
@with_database
def resume(database: Database, job: str, app: str | None) -> None:
    """Resume a paused job: new executions start again, and waiting ones too.

    \b
    rota jobs resume send
    """
    owner, name = database.read(lookup.job, database.namespace, job, app)
    changed = database.transact(job_pauses.resume, database.namespace, owner, name, database.actor)
    output.message(f"job {owner}.{name} {'resumed' if changed else 'was not paused'}")


def _depends_on(job: views.Job) -> str:
    """The jobs that it depends on; in brackets which end counts if it is not a success, and whether there was one."""
    return ", ".join(_dependency(job, one) for one in job.depends_on)


def _dependency(job: views.Job, one: views.Dependency) -> str:
    about = [] if one.outcome == CountedEnd.SUCCESS else [one.outcome]
    about += ["met"] if one.met else []
    name = label(JobRef(one.app, one.job), job.app)
    return f"{name} ({', '.join(about)})" if about else name


def _timeout(job: views.Job) -> str | None:
    """A declared duration, as its code has it: `30s`."""
    return duration.written(job.timeout.total_seconds()) if job.timeout else None


_COLUMNS: output.Columns[views.Job] = {
    "app": lambda job: job.app,
    "job": lambda job: f"{job.name}({job_parameters.signature(job.parameters)})",
    "queue": lambda job: job.queue,
    "attempts": lambda job: job.retry.get("attempts", ""),
    "timeout": _timeout,
    "depends on": _depends_on,
    "paused": lambda job: text.pause(job.paused).removeprefix("paused "),
    "description": lambda job: job.description,
}
