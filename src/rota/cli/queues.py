"""`rota queues`: how full queues are; pausing and resuming them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import json_option, list_group, note_option

if TYPE_CHECKING:
    from datetime import datetime

    from rota.views.queue import Queue


@list_group
@json_option
@with_database
def queues(database: Database, as_json: bool) -> None:
    """List queues; pause and resume them.

    \b
    rota queues
    rota queues pause mail --note "provider is down"
    """
    from rota.views import queue as views

    found = database.read(views.queues, database.namespace)
    output.listing(found, _columns(database.now()), as_json=as_json, empty="there are no queues yet")


@queues.command()
@click.argument("name")
@note_option
@with_database
def pause(database: Database, name: str, note: str) -> None:
    """Stop workers from claiming from a queue; running executions continue."""
    from rota.domain import payload
    from rota.ops import define

    words = payload.clean(note, 500)
    changed = database.transact(define.pause_queue, database.namespace, name, database.actor, words)
    output.message(f"queue {name} {'is paused' if changed else 'was paused already'}")


@queues.command()
@click.argument("name")
@with_database
def resume(database: Database, name: str) -> None:
    """Let workers claim from a queue again."""
    from rota.ops import define

    changed = database.transact(define.resume_queue, database.namespace, name, database.actor)
    output.message(f"queue {name} {'resumed' if changed else 'was not paused'}")


def _columns(now: datetime) -> output.Columns[Queue]:
    return {
        "queue": lambda one: one.name,
        "queued": lambda one: f"{one.queued}/{one.max_depth}" if one.max_depth else str(one.queued),
        "running": lambda one: str(one.running),
        "waiting": lambda one: str(one.waiting),
        "scheduled": lambda one: str(one.scheduled),
        "dead": lambda one: str(one.dead),
        "oldest": lambda one: text.ago(one.oldest_at, now),
        "policy": lambda one: one.policy,
        "paused": lambda one: text.pause(one.paused, now).removeprefix("paused "),
    }
