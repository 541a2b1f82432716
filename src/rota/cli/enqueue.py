"""`rota enqueue` and `rota start`: accept one execution of a job, or one run of a workflow."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast

import click

from rota.cli import output
from rota.cli.arguments import parse
from rota.cli.database import Database, with_database
from rota.cli.options import all_of, length, load_option, moment, owner_option
from rota.cli.options import priority as level
from rota.domain import names, payload
from rota.domain.errors import NotFinished, UnknownJob, UsageError
from rota.domain.job import Definition, decode
from rota.domain.job_parameters import encode
from rota.domain.unique import Unique
from rota.executors import kinds
from rota.ops.submission import Header, Item
from rota.store import reader
from rota.views import lookup
from rota.views import why as views

if TYPE_CHECKING:  # The commands that do not enqueue start faster without the SDK.
    from rota.sdk.client import Client
    from rota.sdk.options import Options
    from rota.sdk.registered_job import RegisteredJob
    from rota.sdk.registry import Registry

A_MOMENT_S = 1.0
"""An execution that waits longer than this for a free slot is reported as waiting."""


accept_options = all_of(
    click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]…"),
    click.option("--args", "args", metavar="OBJECT", help="The arguments as one JSON object; - reads it from stdin."),
    load_option,
    owner_option,
    click.option("--delay", type=length, metavar="DURATION", help="Start after this time, such as 90s or 1h30m."),
    click.option("--at", type=moment, metavar="TIME", help="Start at this time, such as 2030-01-31T09:00Z."),
    click.option("--priority", type=level, metavar="LEVEL", help="high, normal, low or a number from -100 to 100."),
    click.option("--queue", metavar="NAME", help="A queue other than its own."),
    click.option("--key", metavar="KEY", help="Idempotency key: the same key returns the same execution."),
    click.option("--unique", is_flag=True, help="Only if no execution with the same arguments is pending or running."),
    click.option("--unique-key", metavar="KEY", help="Unique by this key instead of by the arguments."),
    click.option(
        "--unique-for", metavar="SCOPE", help="Unique while queued, active (the default), forever, or for 10m."
    ),
    click.option(
        "--on-conflict", metavar="ACTION", help="If not unique: return (the default), reject, replace or debounce."
    ),
    click.option(
        "--start-within", type=length, metavar="DURATION", help="Skip the execution if it has not started by then."
    ),
    click.option("--wait", is_flag=True, help="Wait for the end and print the result as JSON."),
    click.option("--timeout", type=length, metavar="DURATION", help="With --wait: how long to wait at most."),
    click.option(
        "--json", "as_json", is_flag=True, help="Print a JSON object with the id; with --wait also the result."
    ),
)


@click.command()
@click.argument("job")
@accept_options
@with_database
def enqueue(database: Database, job: str, **given: Any) -> None:
    """Run a job: accept an execution and print its id.

    A VALUE is JSON if it parses as JSON, otherwise it is the text itself: count=3 is a number, to=a@b.c is text,
    items='[1, 2]' is a list, code='"007"' is text that looks like a number. If the annotation of the parameter is
    exactly `str`, then a number, true, false and null are text as written.

    \b
    rota enqueue send to=a@b.c subject=Hello
    rota enqueue send --args '{"to": "a@b.c"}' --delay 5m
    rota enqueue report day=2030-01-31 --wait
    """
    _accept(database, job, **given)


@click.command()
@click.argument("workflow")
@accept_options
@with_database
def start(database: Database, workflow: str, **given: Any) -> None:
    """Start a run of a workflow and print its id.

    Arguments and options are those of `rota enqueue`, which starts workflows too.

    \b
    rota start etl day=2030-01-31
    rota start etl day=2030-01-31 --key 2030-01-31 --wait
    """
    _accept(database, workflow, only_workflows=True, **given)


def _accept(
    database: Database,
    job: str,
    *,
    arguments: tuple[str, ...],
    args: str | None,
    load: str | None,
    app: str | None,
    wait: bool,
    timeout: float | None,
    as_json: bool,
    only_workflows: bool = False,
    **given: Any,
) -> None:
    from rota.sdk.options import applied

    if timeout is not None and not wait:
        raise click.UsageError("--timeout is how long --wait waits: add --wait; the job has its own timeout")
    options = _options(**given)
    code = _load(database, load, app) if load is not None else None
    what = "workflow" if only_workflows else "job"
    if code is not None:
        name, job = _named(code, job, what)
    else:
        name, job = database.read(lookup.job, database.namespace, job, app, what=what)
    definition = _definition(database, code, name, job)
    if only_workflows and definition.target.get("kind") != kinds.WORKFLOW:
        raise UsageError(f"{job} is a job and no workflow: `rota enqueue {job}`; `rota workflows` lists workflows")
    values = parse(arguments, args, definition.parameters)
    text = encode(job, values, definition.parameters, database.settings.max_payload_bytes)
    if code is not None:
        _registered(code, job).signature.check(text)
    client = code.client if code else _client(database, name)
    header = applied(options, _header(database, name, definition))
    (accepted,) = client.enqueue(header, [Item(client.ids.new(), text, payload.digest(text))])
    if not accepted.created:
        output.message("this execution was there already; nothing was added")
    made: dict[str, Any] = {"runId" if only_workflows else "executionId": accepted.id, "isNew": accepted.created}
    if wait:
        made["result"] = _wait(database, client, accepted.id, timeout)
    if as_json or wait:
        print(output.to_json(made if as_json else made["result"]))
    else:
        print(accepted.id)


def _options(
    *, unique: bool, unique_key: str | None, unique_for: str | None, on_conflict: str | None, **others: Any
) -> Options:
    if others["delay"] is not None and others["at"] is not None:
        raise click.UsageError("give --delay or --at, not both")
    if others["queue"] is not None:
        names.check(others["queue"], "a queue's name")
    is_unique = unique or unique_key is not None or unique_for is not None or on_conflict is not None
    rule = Unique(key=unique_key, scope=unique_for or "active", on_conflict=on_conflict or "return")
    return cast("Options", {**others, "unique": rule if is_unique else None})


def _load(database: Database, reference: str, name: str | None) -> Registry:
    from rota.cli.apps import agree, load_app

    database.export()
    app = load_app(reference)
    if name not in (None, app.name):
        raise UsageError(f"{reference} is the app {app.name!r}, not {name!r}: leave out --app or --load")
    agree(app, database.given)
    # From here on the app's own settings apply, as in its programs and workers.
    database.given = {"url": app.settings.url, "namespace": app.settings.namespace}
    database.__dict__.pop("settings", None)
    return app


def _named(app: Registry, job: str, what: str) -> tuple[str, str]:
    """The app and the job; `app.job`, as lists show it, works too."""
    known = {**app.jobs, **app.workflows}
    name = job if job in known else job.removeprefix(f"{app.name}.")
    if name not in known:
        listed = ", ".join(app.workflows if what == "workflow" else app.jobs)
        raise UnknownJob(f"app {app.name!r} has no {what} {job!r}{_near(job, known)}; it has {listed or 'none'}")
    return app.name, name


def _registered(app: Registry, job: str) -> RegisteredJob:
    return app.jobs.get(job) or app.workflows[job]


def _definition(database: Database, app: Registry | None, name: str, job: str) -> Definition:
    if app is not None:
        app.check()  # Makes the graphs of the workflows.
        return _registered(app, job).definition
    text = database.read(reader.definition, database.namespace, name, job)
    assert text is not None, "a job that was found has a definition"
    return decode(text)


def _client(database: Database, app: str) -> Client:
    """A client of an app whose code is not loaded: it registers nothing."""
    from rota.sdk.connection import Connection
    from rota.sdk.store_client import StoreClient

    return StoreClient(Connection(database.settings, app, lambda: ((), ())), app)


def _header(database: Database, app: str, definition: Definition) -> Header:
    return Header(
        namespace=database.namespace,
        app=app,
        job=definition.name,
        queue=definition.queue,
        actor=database.actor,
        priority=definition.priority,
        start_within_s=definition.start_within_s,
    )


def _wait(database: Database, client: Client, id: str, timeout_s: float | None) -> Any:
    """The result. First says why the execution does not run: after a moment, if it only waits for a slot."""
    from rota.sdk.handle import Handle

    why = database.read(views.why, database.namespace, id)
    output.message(id if why is None or why.is_in_line else f"{id}: {why.text}")
    moment_s = A_MOMENT_S if timeout_s is None else min(timeout_s, A_MOMENT_S)
    ending = client.wait(id, moment_s)
    if ending is None and moment_s != timeout_s:
        why = database.read(views.why, database.namespace, id)
        if why is not None and why.is_in_line:
            output.message(f"{id}: {why.text}")
        ending = client.wait(id, None if timeout_s is None else timeout_s - moment_s)
    if ending is None:
        raise NotFinished(f"execution {id} is {client.status(id)} after {timeout_s:g} s; it continues")
    return Handle[Any](client, id).result()


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""
