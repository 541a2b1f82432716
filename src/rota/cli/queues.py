"""`rota queues`: list queues, pause and resume them."""

from __future__ import annotations

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import json_option, list_group, note_option
from rota.domain import payload
from rota.ops import define
from rota.views import queue as views


@list_group
@json_option
@with_database
def queues(database: Database, as_json: bool) -> None:
    """List queues; pause and resume them.

    \b
    rota queues
    rota queues pause mail --note "provider is down"
    """
    found = database.read(views.queues, database.namespace)
    output.listing(found, _COLUMNS, as_json=as_json, empty="there are no queues yet", spare=_SPARE)


@queues.command()
@click.argument("name")
@note_option
@with_database
def pause(database: Database, name: str, note: str) -> None:
    """Stop workers from claiming from a queue; running executions continue."""
    reason = payload.clean(note, payload.MOST_NOTE)
    changed = database.transact(define.pause_queue, database.namespace, name, database.actor, reason)
    output.message(f"queue {name} {'is paused' if changed else 'was paused already'}")


@queues.command()
@click.argument("name")
@with_database
def resume(database: Database, name: str) -> None:
    """Let workers claim from a queue again."""
    changed = database.transact(define.resume_queue, database.namespace, name, database.actor)
    output.message(f"queue {name} {'resumed' if changed else 'was not paused'}")


_COLUMNS: output.Columns[views.Queue] = {
    "queue": lambda one: one.name,
    "queued": lambda one: one.queued,
    "at most": lambda one: one.max_depth or None,
    "running": lambda one: one.running,
    "waiting": lambda one: one.waiting,
    "scheduled": lambda one: one.scheduled,
    "dead": lambda one: one.dead,
    "oldest due": lambda one: one.oldest_at,
    "policy": lambda one: one.policy,
    "paused": lambda one: text.pause(one.paused).removeprefix("paused "),
}
_SPARE = ("policy", "at most", "scheduled", "waiting", "dead")
