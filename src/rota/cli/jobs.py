"""`rota jobs`: what can be enqueued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import json_option
from rota.domain import duration

if TYPE_CHECKING:
    from rota.store.reader import JobRow


@click.group(invoke_without_command=True)
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
    if click.get_current_context().invoked_subcommand is not None:
        return
    from rota.store import reader

    rows = [row for row in database.read(reader.jobs, database.namespace) if app in (None, row.app)]
    known = [{"app": row.app, **output.decoded(row.definition), **_paused(row)} for row in rows]
    if as_json:
        output.print_json_rows(known)
    elif known:
        output.table(list(COLUMNS), [[cell(job) for cell in COLUMNS.values()] for job in known])
    else:
        output.message("no jobs are known yet: start `rota dev MODULE:APP` or `rota worker MODULE:APP` once")


@jobs.command()
@click.argument("job")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@click.option("--note", default="", metavar="TEXT", help="Why; shown to whoever asks.")
@with_database
def pause(database: Database, job: str, app: str | None, note: str) -> None:
    """Start no more executions of a job; what runs goes on, and what comes waits.

    \b
    rota jobs pause send --note "the mail server is down"
    """
    from rota.ops import pausing

    whose = _owner(database, job, app)
    changed = database.transact(pausing.pause, database.namespace, whose, job, database.actor, note)
    output.message(f"job {whose}.{job} is paused" if changed else f"job {whose}.{job} was paused already")


@jobs.command()
@click.argument("job")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@with_database
def resume(database: Database, job: str, app: str | None) -> None:
    """Start executions of a paused job again, with those that have waited.

    \b
    rota jobs resume send
    """
    from rota.ops import pausing

    whose = _owner(database, job, app)
    changed = database.transact(pausing.resume, database.namespace, whose, job, database.actor)
    output.message(f"job {whose}.{job} goes on" if changed else f"job {whose}.{job} was not paused")


def _owner(database: Database, job: str, app: str | None) -> str:
    from rota.domain.errors import UnknownJob, UsageError
    from rota.store import reader

    apps = [app] if app else database.read(reader.apps_of_job, database.namespace, job)
    if not apps:
        raise UnknownJob(f"there is no job {job!r}; `rota jobs` lists them")
    if len(apps) > 1:
        raise UsageError(f"the apps {', '.join(apps)} have a job {job!r}: say which with --app")
    return apps[0]


def _paused(row: JobRow) -> dict[str, Any]:
    return {"paused_at": text.iso(row.paused_at), "paused_by": row.paused_by, "paused_note": row.paused_note}


def _state(job: dict[str, Any]) -> str:
    if job["paused_at"] is None:
        return ""
    note = f": {job['paused_note']}" if job["paused_note"] else ""
    return f"paused by {job['paused_by']}{note}"


def _bound(value_s: float | None) -> str:
    """What somebody has written, so `30s` and not the `30.0s` of something measured."""
    if not value_s:
        return "-"
    return f"{value_s:g}s" if 1 <= value_s < 60 else duration.words(value_s)


COLUMNS: output.Columns[dict[str, Any]] = {
    "app": lambda job: str(job["app"]),
    "job": lambda job: f"{job['name']}({parameters(job['parameters'])})",
    "queue": lambda job: str(job["queue"]),
    "attempts": lambda job: str(job["retry"].get("attempts", "")),
    "timeout": lambda job: _bound(job["timeout_s"]),
    "state": _state,
    "description": lambda job: str(job["description"]),
}


def parameters(known: dict[str, dict[str, Any]]) -> str:
    """A job's parameters as one would write them; an optional one ends in `?`."""
    required_first = sorted(known.items(), key=lambda parameter: not parameter[1]["required"])
    return ", ".join("…" if about.get("others") else _parameter(name, about) for name, about in required_first)


def _parameter(name: str, about: dict[str, Any]) -> str:
    return f"{name}{'' if about['required'] else '?'}" + ("" if about["type"] == "any" else f": {about['type']}")
