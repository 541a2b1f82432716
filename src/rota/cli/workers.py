"""`rota workers`: who runs executions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import instant, json_option, past
from rota.domain import requirement
from rota.domain.headcount import Headcount

if TYPE_CHECKING:
    from rota.store.reader import WorkerRow


@click.group(invoke_without_command=True)
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
    if click.get_current_context().invoked_subcommand is not None:
        return
    from rota.store import reader

    now = database.clock.now()
    # Nobody has stopped in the future: by default only those that have not stopped.
    stopped_since = instant(since) if since else 2**62
    rows = database.read(reader.workers, database.namespace, stopped_since or 0)
    output.listing(
        rows,
        _columns(now, _crews(rows, now)),
        as_json=as_json,
        empty="no worker is at work: start one with `rota worker`",
    )


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
    from rota.store import reader

    if database.transact(fleet.ask_to_drain, database.namespace, worker, database.actor):
        output.message(f"worker {worker} takes nothing more, and ends when it has finished")
        return
    known = {row.id: row for row in database.read(reader.workers, database.namespace, 0)}
    if worker not in known:
        raise UsageError(f"there is no worker {worker}; `rota workers` lists them")
    row = known[worker]
    output.message(f"worker {worker} {'has stopped' if row.stopped_at is not None else 'drains already'}")


def state(row: WorkerRow, now: int) -> str:
    """What a worker is up to, as far as anybody can know."""
    if row.stopped_at is None and row.lease_until <= now:
        return "lease ran out"
    return f"{row.state}, starts no processes" if row.trouble and row.stopped_at is None else row.state


def _crews(rows: Sequence[WorkerRow], now: int) -> Counter[str]:
    """How many processes each supervisor has at work."""
    return Counter(row.supervisor for row in rows if row.stopped_at is None and row.lease_until > now)


def _processes(row: WorkerRow, crews: Counter[str]) -> str:
    """Of the supervisor: how many there are, and how many there may be. An older version does not tell."""
    if not row.supervisor:
        return "-"
    return f"{crews[row.supervisor]}/{Headcount(row.least, row.most)}"


def _columns(now: int, crews: Counter[str]) -> output.Columns[WorkerRow]:
    return {
        "worker": lambda row: str(row.id),
        "name": lambda row: row.name,
        "app": lambda row: row.app,
        "state": lambda row: state(row, now),
        "busy": lambda row: f"{row.running}/{row.concurrency}",
        "processes": lambda row: _processes(row, crews),
        "offers": lambda row: requirement.offered(row.offers),
        "queues": lambda row: ",".join(map(output.as_text, output.decoded(row.queues) or ["(all)"])),
        "heartbeat": lambda row: text.ago(min(row.heartbeat_at, now), now),
        "started": lambda row: text.ago(row.started_at, now),
        "version": lambda row: row.version,
    }
