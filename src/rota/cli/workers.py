"""`rota workers`: the processes that run executions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import instant, json_option, list_group, past
from rota.domain import requirement
from rota.domain.headcount import Headcount

if TYPE_CHECKING:
    from rota.views.worker import Worker


@list_group
@click.option("--since", type=past, metavar="TIME", help="Also those that stopped since then, such as 1h (ago).")
@json_option
@with_database
def workers(database: Database, since: datetime | None, as_json: bool) -> None:
    """List workers that are at work; ask one to drain.

    Each is a process. BUSY is how many of its slots are in use, PROCESSES how many its supervisor has at work, and how
    many it may have.

    \b
    rota workers --since 1d
    rota workers drain 12
    """
    from rota.views import worker as views

    found = database.read(views.workers, database.namespace, instant(since) or views.NEVER)
    empty = "no worker is at work: start one with `rota worker`"
    output.listing(found, _columns(database.now()), as_json=as_json, empty=empty)


@workers.command()
@click.argument("worker", type=int)
@with_database
def drain(database: Database, worker: int) -> None:
    """Let a worker process finish what it runs, take nothing more, and end.

    It claims nothing from now on, has its usual grace, and gives the rest back; nobody takes its place. A worker whose
    processes have all been drained ends.

    \b
    rota workers drain 12
    """
    from rota.domain.errors import UsageError
    from rota.ops import fleet
    from rota.views import worker as views

    if database.transact(fleet.ask_to_drain, database.namespace, worker, database.actor):
        output.message(f"worker {worker} takes nothing more, and ends when it has finished")
        return
    known = {one.worker_id: one for one in database.read(views.workers, database.namespace, 0)}
    if str(worker) not in known:
        raise UsageError(f"there is no worker {worker}; `rota workers` lists them")
    has_stopped = known[str(worker)].stopped_at is not None
    output.message(f"worker {worker} {'has stopped' if has_stopped else 'drains already'}")


def _columns(now: datetime) -> output.Columns[Worker]:
    return {
        "worker": lambda one: one.worker_id,
        "name": lambda one: one.name,
        "app": lambda one: one.app,
        "state": _state,
        "busy": lambda one: f"{one.busy}/{one.slots}",
        "processes": _processes,
        "offers": lambda one: requirement.offered(requirement.Offers(**one.offers)),
        "queues": lambda one: ",".join(map(output.as_text, one.queues or ["(all)"])),
        "heartbeat": lambda one: text.ago(min(one.last_heartbeat, now), now),
        "started": lambda one: text.ago(one.started_at, now),
        "version": lambda one: one.version,
        "deploy": lambda one: "-" if one.deploy is None else str(one.deploy),
    }


def _state(one: Worker) -> str:
    if one.is_lost:
        return "lease ran out"
    if not one.trouble or one.stopped_at is not None:
        return one.state
    return f"{one.state}, {'stands still' if requirement.STANDS_STILL in one.trouble else 'starts no processes'}"


def _processes(one: Worker) -> str:
    """Live processes of the supervisor, and how many it may have."""
    return (
        "-" if one.processes is None else f"{one.processes.live}/{Headcount(one.processes.least, one.processes.most)}"
    )
