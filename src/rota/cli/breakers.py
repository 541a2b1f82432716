"""`rota breakers`: what jobs rely on, and whether it works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import json_option

if TYPE_CHECKING:
    from rota.domain.breaker import Circuit


@click.group(invoke_without_command=True)
@json_option
@with_database
def breakers(database: Database, as_json: bool) -> None:
    """List circuit breakers that have seen failures; close one by hand.

    While a breaker is open, no execution of a job that relies on it starts, but for one now and then that tries.

    \b
    rota breakers
    rota breakers close payments
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    from rota.ops import breaking

    found = database.read(breaking.circuits, database.namespace)
    if as_json:
        output.print_json_rows(_row(circuit) for circuit in found)
    else:
        output.listing(found, _columns(database.clock.now()), as_json=False, empty="no breaker has seen a failure")


@breakers.command()
@click.argument("name")
@with_database
def close(database: Database, name: str) -> None:
    """Let everything that relies on it start again.

    \b
    rota breakers close payments
    """
    from rota.ops import breaking

    changed = database.transact(breaking.close, database.namespace, name, database.actor)
    output.message(f"breaker {name} is closed" if changed else f"breaker {name} was closed already")


def _row(circuit: Circuit) -> dict[str, Any]:
    return {
        "breaker": circuit.name,
        "state": _state(circuit),
        "failures": circuit.failures,
        "opened_at": text.iso(circuit.opened_at),
        "next_try_at": text.iso(circuit.retry_at),
    }


def _columns(now: int) -> output.Columns[Circuit]:
    return {
        "breaker": lambda circuit: circuit.name,
        "state": _state,
        "failures": lambda circuit: str(circuit.failures),
        "opened": lambda circuit: text.ago(circuit.opened_at, now),
        "next try": lambda circuit: text.ago(circuit.retry_at, now),
    }


def _state(circuit: Circuit) -> str:
    return "closed" if circuit.opened_at is None else "open"
