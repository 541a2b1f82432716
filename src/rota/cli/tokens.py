"""`rota tokens`: who may call the HTTP API."""

from __future__ import annotations

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.options import json_option, length, list_group
from rota.domain import access
from rota.domain import token as texts
from rota.domain.access import LOCAL, Grant, Role, Scope
from rota.domain.errors import UsageError
from rota.domain.instant import MICROSECONDS
from rota.ids import IdSource
from rota.ops import tokens as ops
from rota.store.port import Tx, View
from rota.views import token as views
from rota.views.token import NewToken, Token

DAYS = 90


@list_group
@json_option
@with_database
def tokens(database: Database, as_json: bool) -> None:
    """List the tokens of the HTTP API; make, rotate and revoke them.

    Until the first token is made, the server listens only on this machine, and every caller may do everything.

    \b
    rota tokens
    rota tokens create deploys --role operator
    """
    found = database.read(views.tokens, database.namespace)
    output.listing(found, _COLUMNS, as_json=as_json, empty="there are no tokens yet", spare=["last used", "ending"])


@tokens.command()
@click.argument("name")
@click.option("--role", type=click.Choice([role.value for role in Role]), metavar="ROLE", help=f"{', '.join(Role)}.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    metavar="SCOPE",
    help="A single right instead of a role; may be repeated.",
)
@click.option("--in", "namespaces", multiple=True, metavar="NAMESPACE", help="A namespace; * is all of them.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group that approvals may name.")
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Only this queue; may be repeated.")
@click.option("--job", "jobs", multiple=True, metavar="NAME", help="Only this job; may be repeated.")
@click.option("--expires", type=length, default=f"{DAYS}d", metavar="DURATION", help=f"How long it is valid ({DAYS}d).")
@json_option
@with_database
def create(
    database: Database,
    name: str,
    role: str | None,
    scopes: tuple[str, ...],
    namespaces: tuple[str, ...],
    groups: tuple[str, ...],
    queues: tuple[str, ...],
    jobs: tuple[str, ...],
    expires: float,
    as_json: bool,
) -> None:
    """Make a token and print it. It is shown only now.

    \b
    rota tokens create dashboard --role admin
    rota tokens create shop --role producer --queue mail --expires 30d
    """
    if bool(role) == bool(scopes):
        raise UsageError("a token has a role or scopes: give --role ROLE, or --scope SCOPE")
    granted = access.SCOPES[Role(role)] if role else tuple(Scope(scope) for scope in scopes)
    grant = Grant(
        actor=name,
        scopes=frozenset(granted),
        namespaces=namespaces or (database.namespace,),
        role=Role(role) if role else None,
        groups=groups,
        queues=queues or None,
        jobs=jobs or None,
    )
    text = _text(database, grant)
    until = database.clock.now() + round(expires * MICROSECONDS)
    wanted = ops.TokenToMake(id=IdSource(database.clock).new(), text=text, grant=grant, expires_at=until)
    own = Grant(actor=database.actor, scopes=frozenset(Scope), namespaces=LOCAL.namespaces)
    _print(database.transact(_made, database.namespace, wanted, own), as_json=as_json)


@tokens.command()
@click.argument("name")
@click.option("--overlap", type=length, default="0s", metavar="DURATION", help="How long the old one stays valid (0s).")
@json_option
@with_database
def rotate(database: Database, name: str, overlap: float, as_json: bool) -> None:
    """Give a token a new secret and print it.

    \b
    rota tokens rotate deploys --overlap 1h
    """
    text = _text(database, None)
    id = database.read(_id, database.namespace, name)
    _print(database.transact(_rotated, database.namespace, id, text, overlap, database.actor), as_json=as_json)


@tokens.command()
@click.argument("name")
@with_database
def revoke(database: Database, name: str) -> None:
    """End a token, its sessions and its open streams.

    \b
    rota tokens revoke deploys
    """
    id = database.read(_id, database.namespace, name)
    database.transact(ops.revoke, database.namespace, id, database.actor)
    output.message(f"token {name} is revoked; servers notice it within 5 s")


def _made(tx: Tx, namespace: str, wanted: ops.TokenToMake, own: Grant) -> NewToken:
    return views.new_token(ops.make(tx, namespace, wanted, own), tx.now, wanted.text)


def _rotated(tx: Tx, namespace: str, id: str, text: str, overlap_s: float, actor: str) -> NewToken:
    return views.new_token(ops.rotate(tx, namespace, id, text, overlap_s, actor), tx.now, text)


def _id(view: View, namespace: str, name: str) -> str:
    found = [one.token_id for one in views.tokens(view, namespace) if one.name == name and one.revoked_at is None]
    if not found:
        raise UsageError(f"there is no token {name!r} that is not revoked; `rota tokens` lists them")
    return found[0]


def _text(database: Database, grant: Grant | None) -> str:
    prefix = texts.WORKER_PREFIX if grant is not None and grant.scopes == {Scope.WORK} else texts.PREFIX
    return texts.written(database.clock.secret_bits(texts.SECRET_BITS), prefix)


def _print(made: NewToken, *, as_json: bool) -> None:
    if as_json:
        print(output.to_json(made))
        return
    print(made.secret)
    output.message(f"token {made.name}: keep it, it is not shown again; send it as Authorization: Bearer …")


_COLUMNS: output.Columns[Token] = {
    "token": lambda one: one.name,
    "state": lambda one: one.state,
    "role": lambda one: one.role or ", ".join(one.scopes),
    "namespaces": lambda one: ", ".join(one.namespaces),
    "expires": lambda one: one.expires_at,
    "last used": lambda one: one.last_used_at,
    "ending": lambda one: one.ending,
}
