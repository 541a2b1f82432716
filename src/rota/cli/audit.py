"""`rota audit`: who changed what."""

from __future__ import annotations

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.options import json_option, number, past
from rota.store.audit_reader import AuditFilter
from rota.views import audit as views

MOST = 10_000


@click.command()
@click.option("--actor", metavar="NAME", help="Only changes of this actor, such as token:deploys or cli:root.")
@click.option("--action", metavar="NAME", help="Only this action, or all of a noun: queue.pause, or queue.")
@click.option("--subject", metavar="NAME", help="Only changes of this thing.")
@click.option("--since", type=past, metavar="TIME", help="Only changes since then: a time, or 2h.")
@click.option("--limit", type=number(MOST), default=50, metavar="N", help="How many rows at most (default: 50).")
@json_option
@with_database
def audit(
    database: Database,
    actor: str | None,
    action: str | None,
    subject: str | None,
    since: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """List who changed what, newest first.

    Changes of definitions, settings and tokens are recorded, and the actions of operators.

    \b
    rota audit --since 1d
    rota audit --action queue --actor cli:root
    """
    wanted = AuditFilter(actor=actor, action=action, subject=subject, since=since or 0, limit=limit)
    found = database.read(views.entries, database.namespace, wanted)
    output.listing(found.items, _COLUMNS, as_json=as_json, empty="no change is recorded", spare=["address"])
    if found.has_more:
        output.message("there are more: use --limit or --since")


_COLUMNS: output.Columns[views.AuditEntry] = {
    "at": lambda one: one.at,
    "actor": lambda one: one.actor,
    "action": lambda one: one.action,
    "subject": lambda one: one.subject,
    "address": lambda one: one.address,
}
