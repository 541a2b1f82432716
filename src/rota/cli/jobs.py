"""`rota jobs`: list the jobs that can be enqueued, pause and resume them."""

from __future__ import annotations

from collections.abc import Mapping

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import app_option, json_option, list_group, note_option, owner_option
from rota.domain import duration, job_parameters
from rota.domain.dependency import CountedEnd, Upstream, label
from rota.ops import job_pauses
from rota.store import definition_reader
from rota.store.definition_reader import JobFilter, JobRow
from rota.store.port import View
from rota.views import job_detail, lookup
from rota.views.shape import paused


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
    rows = database.read(_rows, database.namespace, app)
    if as_json:
        output.print_json_rows(database.read(job_detail.jobs, database.namespace, rows))
        return
    columns = _columns(database.read(job_detail.met, database.namespace, rows))
    spare = ["description", "timeout", "attempts", "queue", *(["app"] if len({row.app for row in rows}) == 1 else [])]
    empty = "no jobs are known yet: start `rota dev MODULE:APP` or `rota worker MODULE:APP` once"
    empty = text.none_of(app, "jobs", f"{empty}; `rota workflows` lists workflows")
    output.listing(rows, columns, as_json=False, empty=empty, spare=spare, whole="job")


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


def _rows(view: View, namespace: str, app: str | None) -> list[JobRow]:
    """The jobs of all apps or of one."""
    wanted = JobFilter(app=None if app is None else [app])
    return [row for row in definition_reader.all_jobs(view, namespace) if wanted.fits(row)]


def _columns(met: Mapping[str, Mapping[str, str]]) -> output.Columns[JobRow]:
    """`met` has the ends that count for the next start of each job, by its id."""
    return {
        "app": lambda row: row.app,
        "job": lambda row: f"{row.name}({job_parameters.signature(row.about.parameters)})",
        "queue": lambda row: row.about.queue,
        "attempts": lambda row: row.about.retry.get("attempts", ""),
        "timeout": lambda row: duration.written(row.about.timeout_s) if row.about.timeout_s else None,
        "depends on": lambda row: ", ".join(_upstream(row, one, met) for one in row.about.depends_on),
        "paused": lambda row: text.pause(paused(row)).removeprefix("paused "),
        "description": lambda row: row.about.description,
    }


def _upstream(row: JobRow, one: Upstream, met: Mapping[str, Mapping[str, str]]) -> str:
    """A job that it depends on; in brackets the end that counts, unless that is a success, and `met` if it has come."""
    name = label(one.ref, row.app)
    about = [] if one.outcome is CountedEnd.SUCCESS else [one.outcome.value]
    about += ["met"] if name in met.get(row.id, {}) else []
    return f"{name} ({', '.join(about)})" if about else name
