"""`rota namespaces`: which there are, and how long each keeps its history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.params import json_option, length
from rota.domain import duration

if TYPE_CHECKING:
    from rota.domain.retention import Retention

FOREVER, DEFAULT = "forever", "default"


@click.group(invoke_without_command=True)
@json_option
@with_database
def namespaces(database: Database, as_json: bool) -> None:
    """List namespaces; say how long they keep their history.

    \b
    rota namespaces
    rota namespaces retention billing 90d
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    from rota.domain.retention import DAY_S, Retention
    from rota.store import history

    kept = Retention(database.settings.retention_days * DAY_S, database.read(history.retentions))
    if as_json:
        output.print_json_rows(
            {"name": name, "retention_s": kept.of(name) or None, "own": own is not None}
            for name, own in kept.namespaces.items()
        )
    elif kept.namespaces:
        output.table(["namespace", "keeps history for"], [[name, _words(kept, name)] for name in kept.namespaces])
    else:
        output.message("there are no namespaces yet")


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


def _words(kept: Retention, name: str) -> str:
    seconds = kept.of(name)
    text = duration.words(seconds) if seconds else "for ever"
    return text if kept.namespaces[name] is not None else f"{text} (retention_days)"
