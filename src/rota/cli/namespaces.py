"""`rota namespaces`: which there are, and how long each keeps its history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.params import json_option, length, list_group
from rota.domain import duration

if TYPE_CHECKING:
    from rota.views.namespace import Namespace

FOREVER, DEFAULT = "forever", "default"


@list_group
@json_option
@with_database
def namespaces(database: Database, as_json: bool) -> None:
    """List namespaces; say how long they keep their history.

    \b
    rota namespaces
    rota namespaces retention billing 90d
    """
    from rota.views import namespace as views

    found = database.read(views.namespaces, database.settings.retention_days)
    output.listing(found, _COLUMNS, as_json=as_json, empty="there are no namespaces yet")


@namespaces.command()
@click.argument("name")
@click.argument("kept", metavar="DURATION|forever|default")
@with_database
def retention(database: Database, name: str, kept: str) -> None:
    """Say how long a namespace keeps what has ended.

    A duration of an hour at least, such as 90d; `forever`; or `default` for what the setting retention_days says. Dead
    letters and what has not ended are kept in any case.

    \b
    rota namespaces retention billing 90d
    """
    from rota.domain import retention as domain
    from rota.ops import retention as ops

    seconds = {FOREVER: domain.FOREVER, DEFAULT: None}.get(kept) if kept in (FOREVER, DEFAULT) else _seconds(kept)
    database.transact(ops.set_retention, name, seconds, database.actor)
    output.message(f"namespace {name} keeps its history {_kept(kept)}")


def _seconds(kept: str) -> int:
    """A duration that is not nothing: 0 would be understood as `forever` by some and as `at once` by others."""
    seconds = round(length(kept))
    if seconds == 0:
        raise click.BadParameter("0 is no retention: write `forever`, or a duration of an hour at least.")
    return seconds


def _kept(kept: str) -> str:
    return {FOREVER: "for ever", DEFAULT: "for as long as the setting retention_days says"}.get(kept, f"for {kept}")


def _words(one: Namespace) -> str:
    text = duration.words(one.retention) if one.retention else "for ever"
    return text if one.has_own_retention else f"{text} (retention_days)"


_COLUMNS: output.Columns[Namespace] = {"namespace": lambda one: one.name, "keeps history for": _words}
