"""`rota breakers`: list circuit breakers that have seen failures, and close them by hand."""

from __future__ import annotations

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.options import json_option, list_group
from rota.ops import breakers as ops
from rota.views import breaker as views


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
    found = database.read(views.breakers, database.namespace)
    output.listing(found, _COLUMNS, as_json=as_json, empty="no breaker has seen a failure")


@breakers.command()
@click.argument("name")
@with_database
def close(database: Database, name: str) -> None:
    """Let executions of all jobs that rely on it start again.

    \b
    rota breakers close payments
    """
    changed = database.transact(ops.close, database.namespace, name, database.actor)
    output.message(f"breaker {name} {'is closed' if changed else 'was closed already'}")


_COLUMNS: output.Columns[views.Breaker] = {
    "breaker": lambda one: one.name,
    "state": lambda one: one.state,
    "failures": lambda one: one.failures,
    "opened": lambda one: one.opened_at,
    "next try": lambda one: one.next_try_at,
}
