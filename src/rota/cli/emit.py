"""`rota emit`: emit an event."""

from __future__ import annotations

import sys
from typing import Any

import click

from rota.cli import output
from rota.cli.arguments import parse
from rota.cli.database import Database, with_database
from rota.cli.options import object_option
from rota.domain import payload
from rota.ids import IdSource
from rota.ops.events import emit as events
from rota.ops.events.emit import EmitHeader
from rota.views.event import event


@click.command()
@click.argument("name")
@click.argument("members", nargs=-1, metavar="[NAME=VALUE]…")
@click.option("--payload", "given", metavar="JSON", help="The payload as one JSON value; - reads it from stdin.")
@click.option("--subject", metavar="TEXT", help="What the event is about, such as the id of an order.")
@click.option("--key", metavar="KEY", help="Idempotency key: emit nothing if an event of this name has it.")
@object_option
@with_database
def emit(
    database: Database,
    name: str,
    members: tuple[str, ...],
    given: str | None,
    subject: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Emit an event and print its id.

    Each NAME=VALUE is a member of the payload, written as for `rota enqueue`. Without any, the payload is null.

    \b
    rota emit order.paid order=A-17 total=99.5 --subject A-17
    rota emit file.uploaded --payload '"s3://bucket/key"' --key upload-17
    """
    from rota.sdk.emitter import emission

    value = _payload(members, given)
    new = emission(
        IdSource(database.clock).new(), name, value, subject, key, most_bytes=database.settings.max_payload_bytes
    )
    (made,) = database.transact(events.emit, EmitHeader(database.namespace, database.actor), [new])
    if not made.created:
        output.message("an event with this key exists already; nothing was emitted")
    if as_json:
        shown = database.read(event, database.namespace, made.id)
        print(output.to_json({"eventId": made.id, "isNew": made.created, "deliveries": shown.deliveries}))
    else:
        print(made.id)


def _payload(members: tuple[str, ...], given: str | None) -> Any:
    if given is None:
        return parse(members, None) if members else None
    if members:
        raise click.UsageError("give the payload as name=value or as --payload, not both")
    return payload.decode(sys.stdin.buffer.read() if given == "-" else given, "--payload")
