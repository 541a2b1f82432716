"""`rota breakers`: circuit breakers that have seen failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import json_option, list_group

if TYPE_CHECKING:
    from datetime import datetime

    from rota.views.breaker import Breaker


@list_group
@json_option
@with_database
def breakers(database: Database, as_json: bool) -> None:
    """List circuit breakers that have seen failures; close one by hand.

    While a breaker is open, executions of the jobs that rely on it do not start, except for one probe at a time.

    \b
    rota breakers
    rota breakers close payments
    """
    from rota.views import breaker as views

    found = database.read(views.breakers, database.namespace)
    output.listing(found, _columns(database.now()), as_json=as_json, empty="no breaker has seen a failure")


@breakers.command()
@click.argument("name")
@with_database
def close(database: Database, name: str) -> None:
    """Let executions of all jobs that rely on it start again.

    \b
    rota breakers close payments
    """
    from rota.ops import breakers

    changed = database.transact(breakers.close, database.namespace, name, database.actor)
    output.message(f"breaker {name} {'is closed' if changed else 'was closed already'}")


def _columns(now: datetime) -> output.Columns[Breaker]:
    return {
        "breaker": lambda one: one.name,
        "state": lambda one: one.state,
        "failures": lambda one: str(one.failures),
        "opened": lambda one: text.ago(one.opened_at, now),
        "next try": lambda one: text.ago(one.next_try_at, now),
    }
