"""`rota namespaces`: list namespaces, and set how long each keeps its history, and its quotas."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import click
import msgspec

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.options import json_option, length, list_group
from rota.domain import duration, plain_types
from rota.domain.errors import UsageError
from rota.domain.quota import Quotas
from rota.domain.retention import FOREVER
from rota.ops.quotas import set_quotas
from rota.ops.retention import set_retention
from rota.store import quota_reader, retention_reader
from rota.store.port import Tx
from rota.views import namespace as views


@list_group
@json_option
@with_database
def namespaces(database: Database, as_json: bool) -> None:
    """List namespaces; set how long they keep their history, and their quotas.

    \b
    rota namespaces
    rota namespaces retention billing 90d
    rota namespaces quotas billing executionsPerS=100
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


@namespaces.command()
@click.argument("name")
@click.argument("changes", nargs=-1, metavar="[QUOTA=NUMBER|none]...")
@with_database
def quotas(database: Database, name: str, changes: tuple[str, ...]) -> None:
    """Set some quotas of a namespace; `none` removes one. Prints all quotas that it has.

    \b
    rota namespaces quotas billing executionsPerS=100 maxDepth=none
    """
    given = dict(_change(text) for text in changes)
    after = database.transact(_set, name, given, database.actor)
    output.message(f"namespace {name}: {_limits(after) or 'no quotas'}")


def _set(tx: Tx, name: str, given: Mapping[str, float | None], actor: str) -> Quotas:
    if name not in retention_reader.retentions(tx):
        raise UsageError(f"there is no namespace {name!r}")
    before = quota_reader.quotas(tx, name)
    members = {**msgspec.to_builtins(before), **given}
    try:
        after = msgspec.convert({key: value for key, value in members.items() if value is not None}, Quotas)
    except msgspec.ValidationError as error:
        raise UsageError(plain_types.in_message(str(error))) from None
    set_quotas(tx, name, after, actor)
    return after


def _change(text: str) -> tuple[str, float | None]:
    """NAME=NUMBER or NAME=none."""
    name, _, value = text.partition("=")
    if name not in Quotas.__struct_encode_fields__:
        near = get_close_matches(name, Quotas.__struct_encode_fields__, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(Quotas.__struct_encode_fields__)}"
        raise click.BadParameter(f"there is no quota {name[:64]!r}: {hint}")
    if value == "none":
        return name, None
    try:
        return name, float(value) if "." in value else int(value)
    except ValueError:
        raise click.BadParameter(f"write {name}=NUMBER or {name}=none, not {text[:64]!r}.") from None


def _kept(kept: str) -> tuple[int | None, str]:
    """The retention in seconds and in words. 0 is refused, because it could mean `forever` or `not at all`."""
    if kept == "forever":
        return FOREVER, "forever"
    if kept == "default":
        return None, "for as long as the setting retention_days says"
    seconds = round(length(kept))
    if seconds == 0:
        raise click.BadParameter("0 is no retention: write `forever`, or a duration of an hour at least.")
    return seconds, f"for {kept}"


def _words(one: views.Namespace) -> str:
    text = duration.written(one.retention) if one.retention else "forever"
    return text if one.has_own_retention else f"{text} (the setting retention_days)"


def _limits(quotas: Quotas) -> str:
    return ", ".join(f"{name} {value}" for name, value in msgspec.to_builtins(quotas).items())


_COLUMNS: output.Columns[views.Namespace] = {
    "namespace": lambda one: one.name,
    "keeps history for": _words,
    "quotas": lambda one: _limits(one.quotas),
}
