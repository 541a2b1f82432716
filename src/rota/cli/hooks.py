"""`rota hooks`: addresses at which other systems post webhooks."""

from __future__ import annotations

from typing import IO

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.options import json_option, length, list_group, object_option
from rota.domain import hook as rules
from rota.domain.hook import Dedupe, Rules, Scheme
from rota.ids import IdSource
from rota.ops import hooks as ops
from rota.ops.hooks import HookToStore
from rota.store import hook_reader
from rota.store.port import Tx
from rota.views import hook as views
from rota.views.hook import Hook, NewHook

secret_option = click.option(
    "--secret-file",
    type=click.File("r"),
    metavar="FILE",
    help="Take the secret that the sender has chosen from this file (- is stdin); without it one is made.",
)


@list_group
@json_option
@with_database
def hooks(database: Database, as_json: bool) -> None:
    """List inbound webhooks; make, rotate and delete them.

    \b
    rota hooks
    rota hooks create pushes github.push --scheme github
    """
    found = database.read(views.hooks, database.namespace)
    output.listing(found, _COLUMNS, as_json=as_json, empty="there are no hooks yet", spare=["repeated by"])


@hooks.command()
@click.argument("name")
@click.argument("event")
@click.option(
    "--scheme",
    type=click.Choice([scheme.value for scheme in Scheme]),
    default=Scheme.STANDARD.value,
    metavar="SCHEME",
    help=f"How requests prove where they come from: {', '.join(Scheme)} (standard).",
)
@click.option("--dedupe-header", metavar="NAME", help="The header with the id of a request.")
@click.option("--dedupe-pointer", metavar="POINTER", help="The place of that id in the body, such as /data/id.")
@click.option("--signature-header", metavar="NAME", help="Of hmac: the header with the signature (X-Signature).")
@click.option("--timestamp-header", metavar="NAME", help="Of hmac: the header with the signed time.")
@click.option("--description", default="", metavar="TEXT", help="What it is for.")
@secret_option
@object_option
@with_database
def create(
    database: Database,
    name: str,
    event: str,
    scheme: str,
    dedupe_header: str | None,
    dedupe_pointer: str | None,
    signature_header: str | None,
    timestamp_header: str | None,
    description: str,
    secret_file: IO[str] | None,
    as_json: bool,
) -> None:
    """Make a hook that emits EVENT, and print its path and its secret.

    The secret is shown only now.

    \b
    rota hooks create pushes github.push --scheme github
    rota hooks create shop order.paid --scheme hmac --dedupe-pointer /id
    """
    has_dedupe = dedupe_header is not None or dedupe_pointer is not None
    dedupe = Dedupe(header=dedupe_header, pointer=dedupe_pointer) if has_dedupe else None
    kind = Scheme(scheme)
    wanted = HookToStore(
        name=name,
        event=event,
        rules=Rules(kind, dedupe, signature_header, timestamp_header),
        description=description,
    )
    key = rules.written_key(database.clock.secret_bits(rules.KEY_BITS))
    id, secret = IdSource(database.clock).new(), _secret(database, kind, secret_file)
    made = database.transact(_made, database.namespace, id, key, secret, wanted, database.actor)
    _print(made, as_json=as_json)


@hooks.command()
@click.argument("name")
@click.option("--overlap", type=length, default="1h", metavar="DURATION", help="How long the old one stays valid (1h).")
@secret_option
@object_option
@with_database
def rotate(database: Database, name: str, overlap: float, secret_file: IO[str] | None, as_json: bool) -> None:
    """Give a hook a new secret and print it.

    \b
    rota hooks rotate pushes --overlap 1d
    """
    found = database.read(hook_reader.hook, database.namespace, name)
    secret = _secret(database, found.scheme, secret_file)
    _print(database.transact(_rotated, database.namespace, found.id, secret, overlap, database.actor), as_json=as_json)


@hooks.command()
@click.argument("name")
@with_database
def delete(database: Database, name: str) -> None:
    """Delete a hook. Its address answers 404 at once.

    \b
    rota hooks delete pushes
    """
    database.transact(ops.delete, database.namespace, name, database.actor)
    output.message(f"hook {name} is deleted")


def _made(tx: Tx, namespace: str, id: str, key: str, secret: str, wanted: HookToStore, actor: str) -> NewHook:
    return views.new_hook(ops.make(tx, namespace, id, key, secret, wanted, actor), tx.now, secret)


def _rotated(tx: Tx, namespace: str, id: str, secret: str, overlap_s: float, actor: str) -> NewHook:
    return views.new_hook(ops.rotate(tx, namespace, id, secret, overlap_s, actor), tx.now, secret)


def _secret(database: Database, scheme: Scheme, file: IO[str] | None) -> str:
    if file is not None:
        return file.read().strip()
    return rules.written_secret(scheme, database.clock.secret_bits(rules.SECRET_BITS))


def _print(made: NewHook, *, as_json: bool) -> None:
    if as_json:
        print(output.to_json(made))
        return
    print(made.path)
    print(made.secret)
    output.message(
        f"hook {made.name}: give the sender the server's address with this path, and the secret, which is "
        "not shown again"
    )


def _repeated_by(one: Hook) -> str | None:
    return None if one.dedupe is None else one.dedupe.header or one.dedupe.pointer


_COLUMNS: output.Columns[Hook] = {
    "hook": lambda one: one.name,
    "event": lambda one: one.event,
    "scheme": lambda one: one.scheme,
    "path": lambda one: one.path,
    "repeated by": _repeated_by,
    "made": lambda one: one.created_at,
}
