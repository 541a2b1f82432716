"""`rota jobs`: list the jobs that can be enqueued, pause and resume them."""

from __future__ import annotations

from collections.abc import Mapping

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import app_option, json_option, list_group, note_option, owner_option
from rota.domain import duration, job_parameters
from rota.domain.dependency import CountedEnd, Upstream, label
from rota.domain.job import Definition
from rota.ops import job_pauses
from rota.store import definition_reader
from rota.store.definition_reader import JobFilter
from rota.store.port import View
from rota.views import job_detail, lookup
from rota.views.job_detail import Job


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
    found, defined = database.read(_jobs, database.namespace, app)
    empty = "no jobs are known yet: start `rota dev MODULE:APP` or `rota worker MODULE:APP` once"
    spare = ["description", "timeout", "attempts", "queue", *(["app"] if len({job.app for job in found}) == 1 else [])]
    empty = text.none_of(app, "jobs", empty)
    output.listing(found, _columns(defined), as_json=as_json, empty=empty, spare=spare, whole="job")


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


def _jobs(view: View, namespace: str, app: str | None) -> tuple[list[Job], dict[str, Definition]]:
    """The jobs of all apps or of one, and their definitions by id."""
    wanted = JobFilter(app=None if app is None else [app])
    rows = [row for row in definition_reader.all_jobs(view, namespace) if wanted.fits(row)]
    return job_detail.jobs(view, namespace, rows), {row.id: row.about for row in rows}


def _columns(defined: Mapping[str, Definition]) -> output.Columns[Job]:
    """Signatures, attempts and dependencies come from the definitions, because the shape has them in another form."""
    return {
        "app": lambda job: job.app,
        "job": lambda job: f"{job.name}({job_parameters.signature(defined[job.job_id].parameters)})",
        "queue": lambda job: job.queue,
        "attempts": lambda job: defined[job.job_id].retry.get("attempts", ""),
        "timeout": lambda job: duration.written(job.timeout) if job.timeout else None,
        "depends on": lambda job: ", ".join(_upstream(job, one) for one in defined[job.job_id].depends_on),
        "paused": lambda job: text.pause(job.paused).removeprefix("paused "),
        "description": lambda job: job.description,
    }


def _upstream(job: Job, one: Upstream) -> str:
    """A job that it depends on; in brackets the end that counts, unless that is a success, and `met` if it has come."""
    name = label(one.ref, job.app)
    about = [] if one.outcome is CountedEnd.SUCCESS else [one.outcome.value]
    about += ["met"] if name in job.met else []
    return f"{name} ({', '.join(about)})" if about else name
