"""`rota events`: list events, show what they started, replay them, and list subscribers."""

from __future__ import annotations

from typing import Any

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import all_of, json_option, limit_option, list_group, object_option, page_options, past
from rota.ids import IdSource
from rota.ops.events import replay
from rota.store.event_reader import EventFilter
from rota.views import event as views

_list_options = all_of(
    click.option("--name", metavar="NAME", help="Only events of this name."),
    click.option("--subject", metavar="TEXT", help="Only events with this subject."),
    click.option("--since", type=past, metavar="TIME", help="Only those since then: 2h (ago), 2030-01-31T09:00Z."),
    page_options,
    json_option,
)


@list_group
@_list_options
@with_database
def events(database: Database, as_json: bool, **wanted: Any) -> None:
    """List events, newest first; show and replay them, and list subscribers.

    \b
    rota events --name order.paid --since 1d
    rota events show 1a2b3c4d
    """
    _list(database, as_json, wanted)


@events.command("list")
@_list_options
@with_database
def events_list(database: Database, as_json: bool, **wanted: Any) -> None:
    """List events, newest first."""
    _list(database, as_json, wanted)


@events.command("show")
@click.argument("id")
@object_option
@with_database
def events_show(database: Database, id: str, as_json: bool) -> None:
    """Show an event with its payload, and what it started."""
    found = database.read(_shown, database.namespace, id)
    if as_json:
        print(output.to_json(found))
        return
    print(f"{found.name} {found.event_id}  emitted {text.when(found.emitted_at)} by {found.actor}")
    for label, value in (("subject", found.subject), ("key", found.key), ("repeats", found.replay_of)):
        if value is not None:
            print(f"{label:8} {value}")
    print(f"payload  {output.to_json(found.payload)}")
    left = "" if found.is_delivered else ", more to come"
    print(f"started  {text.count(found.deliveries, 'execution')}{left}")
    for one in found.started:
        print(f"  {one.execution_id}  {_delivery(one)}")


@events.command("replay")
@click.argument("id")
@click.option("--force", is_flag=True, help="Emit a copy of the event to all subscribers.")
@object_option
@with_database
def events_replay(database: Database, id: str, force: bool, as_json: bool) -> None:
    """Deliver an event to subscribed jobs that have not received it.

    \b
    rota events replay 1a2b3c4d          to jobs that subscribed later
    rota events replay 1a2b3c4d --force  to all; prints the id of the new event
    """
    found = database.read(views.event_id, database.namespace, id)
    if force:
        new = IdSource(database.clock).new()
        database.transact(replay.repeat, database.namespace, found, new, database.actor)
        print(output.to_json(views.Repeated(event_id=new, replay_of=found)) if as_json else new)
        return
    count = database.transact(replay.replay, database.namespace, found, database.actor)
    if as_json:
        print(output.to_json({"eventId": found, "deliveries": count}))
    else:
        output.message(f"started {text.count(count, 'execution')}")


@events.command("subscribers")
@click.option("--name", metavar="NAME", help="Only subscribers to events of this name.")
@limit_option(200, 10_000)
@json_option
@with_database
def events_subscribers(database: Database, name: str | None, limit: int, as_json: bool) -> None:
    """List the jobs that events start, and the steps of runs that wait for one."""
    found = database.read(views.subscribers, database.namespace, name, limit)
    more = "--limit" if found.has_more else ""
    output.listing(found.items, _SUBSCRIBERS, as_json=as_json, empty="there are no subscribers", more=more)


def _list(database: Database, as_json: bool, wanted: dict[str, Any]) -> None:
    found = database.read(views.events, database.namespace, EventFilter(**wanted))
    more = f"--before {found.items[-1].event_id}" if found.has_more else ""
    output.listing(found.items, _COLUMNS, as_json=as_json, empty="no events match", more=more, spare=("key", "subject"))


def _delivery(one: views.Delivery) -> str:
    if one.status is None:
        return "deleted by retention"
    return f"{one.app}.{one.job}  {one.status}" + (f"  (step of run {one.run_id})" if one.run_id else "")


def _shown(view: Any, namespace: str, part: str) -> views.EventDetail:
    return views.event(view, namespace, views.event_id(view, namespace, part))


_COLUMNS: output.Columns[views.Event] = {
    "id": lambda one: one.event_id,
    "name": lambda one: one.name,
    "subject": lambda one: one.subject,
    "key": lambda one: one.key,
    "emitted": lambda one: one.emitted_at,
    "started": lambda one: one.deliveries if one.is_delivered else f"{one.deliveries} …",
}
_SUBSCRIBERS: output.Columns[views.Subscriber] = {
    "event": lambda one: one.name,
    "subject": lambda one: one.subject,
    "subscriber": lambda one: f"{one.app}.{one.job}" if one.job else f"step {one.execution_id}",
    "where": lambda one: output.to_json(one.where) if one.where else None,
    "since": lambda one: one.since,
}
