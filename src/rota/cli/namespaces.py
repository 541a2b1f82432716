"""`rota namespaces`: list namespaces, and set how long each keeps its history."""

from __future__ import annotations

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.options import json_option, length, list_group
from rota.domain import duration
from rota.domain.retention import FOREVER
from rota.ops.retention import set_retention
from rota.views import namespace as views


@list_group
@json_option
@with_database
def namespaces(database: Database, as_json: bool) -> None:
    """List namespaces; set how long they keep their history.

    \b
    rota namespaces
    rota namespaces retention billing 90d
    """
    found = database.read(views.namespaces, database.settings.retention_days)
    output.listing(found, _COLUMNS, as_json=as_json, empty="there are no namespaces yet")


@namespaces.command()
@click.argument("name")
@click.argument("kept", metavar="DURATION|forever|default")
@with_database
def retention(database: Database, name: str, kept: str) -> None:
    """Set how long a namespace keeps ended executions.

    A duration of an hour at least, such as 90d; `forever`; or `default` for the setting retention_days. Dead letters
    and executions that have not ended are kept in any case.

    \b
    rota namespaces retention billing 90d
    """
    seconds, words = _kept(kept)
    database.transact(set_retention, name, seconds, database.actor)
    output.message(f"namespace {name} keeps its history {words}")


def _kept(kept: str) -> tuple[int | None, str]:
    """The retention in seconds and in words. 0 is refused, because it could mean `forever` or `not at all`."""
    if kept == "forever":
        return FOREVER, "for ever"
    if kept == "default":
        return None, "for as long as the setting retention_days says"
    seconds = round(length(kept))
    if seconds == 0:
        raise click.BadParameter("0 is no retention: write `forever`, or a duration of an hour at least.")
    return seconds, f"for {kept}"


def _words(one: views.Namespace) -> str:
    text = duration.words(one.retention) if one.retention else "for ever"
    return text if one.has_own_retention else f"{text} (the setting retention_days)"


_COLUMNS: output.Columns[views.Namespace] = {"namespace": lambda one: one.name, "keeps history for": _words}
