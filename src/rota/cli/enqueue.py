"""`rota enqueue`: asks for one execution of a job."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.params import length, moment
from rota.cli.params import priority as level
from rota.domain import payload
from rota.domain.errors import UnknownJob, UsageError

if TYPE_CHECKING:
    from rota.domain.job import Definition
    from rota.sdk.app import App
    from rota.sdk.client import Client
    from rota.sdk.handle import Handle
    from rota.sdk.options import Options

A_MOMENT_S = 1.0
"""Who has waited for so long for no reason but others wants to know."""


@click.command()
@click.argument("job")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]…")
@click.option("--json", "as_json", metavar="OBJECT", help="The arguments as one JSON object; - reads it from stdin.")
@click.option("--app", "reference", metavar="MODULE:APP", help="Load this app and check the arguments by its code.")
@click.option("--in", "app_name", metavar="APP", help="The app's name, if several apps have such a job.")
@click.option("--delay", type=length, metavar="DURATION", help="Start that much later, such as 90s or 1h30m.")
@click.option("--at", type=moment, metavar="TIME", help="Start then, such as 2030-01-31T09:00Z.")
@click.option("--priority", type=level, metavar="LEVEL", help="high, normal, low or a number from -100 to 100.")
@click.option("--queue", metavar="NAME", help="This queue instead of the job's own.")
@click.option("--key", metavar="KEY", help="Idempotency key: the same key gives the same execution back.")
@click.option("--unique", is_flag=True, help="Only if none with the same arguments is pending or running.")
@click.option("--unique-key", metavar="KEY", help="Unique by this key instead of by the arguments.")
@click.option("--unique-for", metavar="SCOPE", help="Unique while queued, active (the default), forever, or for 10m.")
@click.option(
    "--on-conflict", metavar="ACTION", help="If not unique: return (the default), reject, replace or debounce."
)
@click.option("--start-within", type=length, metavar="DURATION", help="Skip it if it has not started by then.")
@click.option("--wait", is_flag=True, help="Wait for the end and print the result as JSON.")
@click.option("--timeout", type=length, metavar="DURATION", help="With --wait: how long to wait at most.")
@with_database
def enqueue(
    database: Database,
    job: str,
    arguments: tuple[str, ...],
    as_json: str | None,
    reference: str | None,
    app_name: str | None,
    wait: bool,
    timeout: float | None,
    **given: Any,
) -> None:
    """Run a job: accept an execution and print its id.

    A VALUE is JSON if it parses as JSON, otherwise it is the text itself: count=3 is a number, to=a@b.c is text,
    items='[1, 2]' is a list, code='"007"' is text that looks like a number.

    \b
    rota enqueue send to=a@b.c subject=Hello
    rota enqueue send --json '{"to": "a@b.c"}' --delay 5m
    rota enqueue report day=2030-01-31 --wait
    """
    from rota.cli.arguments import parse

    if timeout is not None and not wait:
        raise click.UsageError("--timeout is how long --wait waits: add --wait; the job has its own timeout")
    values = parse(arguments, as_json)
    options = _options(**given)
    app = _load(database, reference, app_name) if reference is not None else None
    name = app.name if app else _app_of(database, job) if app_name is None else app_name
    definition = _definition(database, app, name, job)
    _submit(database, app, name, definition, values, options, wait, timeout)


def _submit(
    database: Database,
    app: App | None,
    name: str,
    definition: Definition,
    values: dict[str, Any],
    options: Options,
    wait: bool,
    timeout: float | None,
) -> None:
    from rota.cli.arguments import encode
    from rota.ops import submission
    from rota.sdk.options import applied

    text = encode(definition.name, values, definition.parameters, database.settings.max_payload_bytes)
    if app is not None:
        app.jobs[definition.name].check(text)
    header = submission.Header(
        namespace=database.namespace,
        app=name,
        job=definition.name,
        queue=definition.queue,
        actor=database.actor,
        priority=definition.priority,
        start_within_s=definition.start_within_s,
    )
    client = app.client if app else _client(database, name)
    item = submission.Item(client.ids.new(), text, payload.digest(text))
    (accepted,) = client.enqueue(applied(options, header), [item])
    if not accepted.created:
        output.message("this execution was there already; nothing was added")
    if wait:
        _wait(database, client, accepted.id, timeout)
    else:
        print(accepted.id)


def _options(
    *,
    delay: float | None,
    at: datetime | None,
    priority: int | None,
    queue: str | None,
    key: str | None,
    unique: bool,
    unique_key: str | None,
    unique_for: str | None,
    on_conflict: str | None,
    start_within: float | None,
) -> Options:
    from rota.domain.unique import Unique
    from rota.sdk.options import Options

    if delay is not None and at is not None:
        raise click.UsageError("give --delay or --at, not both")
    wants_unique = unique or unique_key is not None or unique_for is not None or on_conflict is not None
    return Options(
        delay=delay,
        at=at,
        priority=priority,
        queue=queue,
        key=key,
        unique=Unique(key=unique_key, scope=unique_for or "active", on_conflict=on_conflict or "return")
        if wants_unique
        else None,
        start_within=start_within,
    )


def _load(database: Database, reference: str, app_name: str | None) -> App:
    from rota.cli.loading import agree, load_app

    database.tell_apps()
    app = load_app(reference)
    if app_name not in (None, app.name):
        raise UsageError(f"{reference} is the app {app.name!r}, not {app_name!r}: leave out --in or --app")
    agree(app, database.url, database.namespace_option)
    # The app's own settings are what its programs and workers use.
    database.url, database.namespace_option = app.settings.url, app.settings.namespace
    database.__dict__.pop("settings", None)
    return app


def _app_of(database: Database, job: str) -> str:
    from rota.store import reader

    apps = database.read(reader.apps_of_job, database.namespace, job)
    if len(apps) == 1:
        return apps[0]
    if apps:
        raise UsageError(f"the apps {', '.join(apps)} have a job {job!r}: say which with --in {apps[0]}")
    known = {row.name for row in database.read(reader.jobs, database.namespace)}
    raise UnknownJob(f"no app has a job {job!r}{_near(job, known)}; `rota jobs` lists them, --app MODULE:APP adds one")


def _definition(database: Database, app: App | None, name: str, job: str) -> Definition:
    from rota.domain.job import decode
    from rota.store import reader

    if app is not None:
        if job not in app.jobs:
            raise UnknownJob(f"app {name!r} has no job {job!r}{_near(job, app.jobs)}; it has {', '.join(app.jobs)}")
        return app.jobs[job].definition
    text = database.read(reader.definition, database.namespace, name, job)
    if text is None:
        raise UnknownJob(f"app {name!r} has no job {job!r}; `rota jobs` lists them")
    return decode(text)


def _client(database: Database, app: str) -> Client:
    """A client of an app whose code is not here: it has nothing to register."""
    from rota.sdk.connection import Connection
    from rota.sdk.store_client import StoreClient

    return StoreClient(Connection(database.settings, app, lambda: ((), ())), app)


def _wait(database: Database, client: Client, id: str, timeout: float | None) -> None:
    """Says why it is not running; if it only waits for a free slot, not before that has taken a moment."""
    from rota.domain.errors import NotFinished
    from rota.sdk.handle import Handle
    from rota.views import why as views

    why = database.read(views.why, database.namespace, id)
    output.message(id if why is None or why.is_in_line else f"{id}: {why.text}")
    handle = Handle[Any](client, id)
    try:
        result = handle.result(A_MOMENT_S if timeout is None else min(timeout, A_MOMENT_S))
    except NotFinished:
        if timeout is not None and timeout <= A_MOMENT_S:
            raise
        why = database.read(views.why, database.namespace, id)
        if why is not None and why.is_in_line:
            output.message(f"{id}: {why.text}")
        result = _rest(handle, timeout)
    print(output.to_json(result))


def _rest(handle: Handle[Any], timeout: float | None) -> Any:
    from rota.domain.errors import NotFinished

    try:
        return handle.result(None if timeout is None else timeout - A_MOMENT_S)
    except NotFinished:
        raise NotFinished(f"execution {handle.id} is {handle.status()} after {timeout:g} s; it goes on") from None


def _near(name: str, known: Any) -> str:
    near = get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""
