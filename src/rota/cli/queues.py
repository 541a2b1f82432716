"""`rota queues`: how full they are, and stopping and starting them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import json_option

if TYPE_CHECKING:
    from rota.store.reader import QueueRow


@click.group(invoke_without_command=True)
@json_option
@with_database
def queues(database: Database, as_json: bool) -> None:
    """List queues; pause and resume them.

    \b
    rota queues
    rota queues pause mail --note "provider is down"
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    from rota.store import reader

    rows = database.read(reader.queues, database.namespace)
    output.listing(rows, _columns(database.clock.now()), as_json=as_json, empty="there are no queues yet")


@queues.command()
@click.argument("name")
@click.option("--note", default="", metavar="TEXT", help="Why; shown to whoever asks.")
@with_database
def pause(database: Database, name: str, note: str) -> None:
    """Stop workers from taking work from a queue; what runs goes on."""
    from rota.domain import payload
    from rota.ops import define

    words = payload.clean(note, 500)
    changed = database.transact(define.pause_queue, database.namespace, name, database.actor, words)
    output.message(f"queue {name} is paused" if changed else f"queue {name} was paused already")


@queues.command()
@click.argument("name")
@with_database
def resume(database: Database, name: str) -> None:
    """Let workers take work from a queue again."""
    from rota.ops import define

    changed = database.transact(define.resume_queue, database.namespace, name, database.actor)
    output.message(f"queue {name} goes on" if changed else f"queue {name} was not paused")


def _columns(now: int) -> output.Columns[QueueRow]:
    return {
        "queue": lambda row: row.name,
        "queued": lambda row: f"{row.queued}/{row.max_depth}" if row.max_depth else str(row.queued),
        "running": lambda row: str(row.running),
        "scheduled": lambda row: str(row.scheduled),
        "dead": lambda row: str(row.dead),
        "oldest": lambda row: text.ago(row.oldest_at, now),
        "policy": lambda row: row.policy,
        "paused": lambda row: _paused(row, now),
    }


def _paused(row: QueueRow, now: int) -> str:
    if row.paused_at is None:
        return ""
    by = f" by {row.paused_by}" if row.paused_by else ""
    note = f": {row.paused_note}" if row.paused_note else ""
    return f"{text.ago(row.paused_at, now)}{by}{note}"
