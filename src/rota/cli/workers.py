"""`rota workers`: list the processes that run executions, and drain one."""

from __future__ import annotations

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import app_option, json_option, list_group, past
from rota.domain import requirement
from rota.domain.errors import UsageError
from rota.domain.headcount import Headcount
from rota.ops import fleet
from rota.views import worker as views


@list_group
@app_option
@click.option("--since", type=past, metavar="TIME", help="Also those that stopped since then, such as 1h (ago).")
@json_option
@with_database
def workers(database: Database, app: str | None, since: int | None, as_json: bool) -> None:
    """List live workers; ask one to drain.

    Each is a process. BUSY is how many of its slots are in use, PROCESSES how many live processes its supervisor has,
    and how many it may have.

    \b
    rota workers --since 1d
    rota workers drain 12
    """
    found = database.read(views.workers, database.namespace, views.NEVER if since is None else since)
    found = [one for one in found if app in (None, one.app)]
    empty = "no worker is at work: start one with `rota worker MODULE:APP`"
    output.listing(found, _COLUMNS, as_json=as_json, empty=text.none_of(app, "live workers", empty), spare=_SPARE)


@workers.command()
@click.argument("worker", type=int)
@with_database
def drain(database: Database, worker: int) -> None:
    """Let a worker process finish its executions, claim no more, and exit.

    Executions that do not finish within the grace period return to their queue. The process is not replaced; a worker
    exits when all its processes have been drained.

    \b
    rota workers drain 12
    """
    if database.transact(fleet.ask_to_drain, database.namespace, worker, database.actor):
        output.message(f"worker {worker} drains: it claims nothing more, and exits when its executions have ended")
        return
    known = {one.worker_id: one for one in database.read(views.workers, database.namespace, 0)}
    if str(worker) not in known:
        raise UsageError(f"there is no worker {worker}; `rota workers` lists them")
    has_stopped = known[str(worker)].stopped_at is not None
    output.message(f"worker {worker} {'has stopped' if has_stopped else 'drains already'}")


def _state(one: views.Worker) -> str:
    if one.is_lost:
        return "lease ran out"
    if not one.trouble or one.stopped_at is not None:
        return one.state
    return f"{one.state}, {'stands still' if requirement.STANDS_STILL in one.trouble else 'starts no processes'}"


def _processes(one: views.Worker) -> str | None:
    if one.processes is None:
        return None
    return f"{one.processes.live}/{Headcount(one.processes.least, one.processes.most)}"


_COLUMNS: output.Columns[views.Worker] = {
    "worker": lambda one: one.worker_id,
    "name": lambda one: one.name,
    "app": lambda one: one.app,
    "state": _state,
    "busy": lambda one: f"{one.busy}/{one.slots}",
    "processes": _processes,
    "offers": lambda one: requirement.offered(requirement.Offers(**one.offers)),
    "queues": lambda one: ",".join(map(output.as_text, one.queues or ["(all)"])),
    "heartbeat": lambda one: min(one.last_heartbeat, text.now()),
    "started": lambda one: one.started_at,
    "version": lambda one: one.version,
    "deploy": lambda one: one.deploy,
}
_SPARE = ("version", "deploy", "started", "queues", "offers", "processes")
