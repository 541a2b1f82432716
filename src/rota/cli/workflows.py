"""`rota workflows`: lists the workflows that the database knows, shows, exports, compares and applies versions."""

from __future__ import annotations

from pathlib import Path

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import app_option, json_option, list_group, number, object_option, owner_option
from rota.domain import job_parameters
from rota.domain.errors import UsageError
from rota.domain.workflow import drawing
from rota.domain.workflow.difference import Change, differences
from rota.ops import define
from rota.sdk.workflow.from_file import definition_from_file
from rota.store import workflow_reader
from rota.store.port import View
from rota.views import workflow_detail as views
from rota.views.workflow_detail import Workflow

HIGHEST = 2**31 - 1
MOST_SHOWN = 200
"""Characters of a value in a comparison."""
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
version_option = click.option(
    "--version", "version", type=number(HIGHEST), metavar="N", help="Which version (default: the one in force)."
)


@list_group
@app_option
@json_option
@with_database
def workflows(database: Database, app: str | None, as_json: bool) -> None:
    """List workflows; show, export, compare and apply versions.

    A workflow is known once a worker or a program of its app has used the database.

    \b
    rota workflows
    rota workflows show etl
    """
    found = database.read(_workflows, database.namespace, app)
    empty = "no workflows are known yet: start a worker of an app that has one"
    spare = ("description", "last run", "version", "steps")
    output.listing(found, _COLUMNS, as_json=as_json, empty=text.none_of(app, "workflows", empty), spare=spare)


@workflows.command()
@click.argument("name")
@owner_option
@version_option
@object_option
@with_database
def show(database: Database, name: str, app: str | None, version: int | None, as_json: bool) -> None:
    """Show the steps of a workflow: what each waits for, and its conditions.

    \b
    rota workflows show etl
    """
    row, chosen = database.read(views.chosen, database.namespace, name, app, version)
    found = views.version(row, chosen)
    if as_json:
        print(output.to_json(found, indent=2))
        return
    for line in drawing.text(views.graph_of(chosen)).splitlines():
        print(text.harmless(line))
    in_force = ", in force" if found.is_current else ""
    output.message(f"version {found.version}{in_force}, first seen {text.when(found.created_at)}")


@workflows.command()
@click.argument("name")
@owner_option
@version_option
@with_database
def export(database: Database, name: str, app: str | None, version: int | None) -> None:
    """Print the definition of a workflow as JSON, in the data form.

    \b
    rota workflows export etl > etl.json
    """
    row, chosen = database.read(views.chosen, database.namespace, name, app, version)
    print(output.to_json(views.version(row, chosen).definition, indent=2))


@workflows.command()
@click.argument("name")
@click.argument("old", type=number(HIGHEST), metavar="[V1]", required=False)
@click.argument("new", type=number(HIGHEST), metavar="[V2]", required=False)
@owner_option
@json_option
@with_database
def diff(database: Database, name: str, old: int | None, new: int | None, app: str | None, as_json: bool) -> None:
    """Compare two versions of a workflow.

    By default these are the one in force, and the one before it.

    \b
    rota workflows diff etl 3 4
    """
    row, before, after = database.read(views.chosen_two, database.namespace, name, app, old, new)
    if as_json:
        output.print_json_rows(views.changes(before, after))
        return
    found = differences(views.graph_of(before), views.graph_of(after))
    for change in found:
        print(text.harmless(_line(change)))
    numbers = f"from version {before.number - row.base} to {after.number - row.base}"
    output.message(f"{name}: {text.count(len(found), 'change')} {numbers}")


@workflows.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--app", required=True, metavar="NAME", help="The app that has the jobs of its steps.")
@object_option
@with_database
def apply(database: Database, file: Path, app: str, as_json: bool) -> None:
    """Add a workflow that is a file, YAML or JSON, and put it in force.

    Runs that are open keep the version with which they began.

    \b
    rota workflows apply etl.yaml --app shop
    """
    known = database.read(workflow_reader.definitions, database.namespace, app)
    if not known:
        raise UsageError(f"there is no app {app!r} with jobs; `rota jobs` lists them")
    definition = definition_from_file(file.read_text(), known)
    version = database.transact(define.apply, database.namespace, app, definition, database.actor)
    if as_json:
        print(output.to_json({"workflow": definition.name, "app": app, "version": version}))
    else:
        output.message(f"workflow {app}.{definition.name}: version {version} is in force")


def _workflows(view: View, namespace: str, app: str | None) -> list[Workflow]:
    """The workflows of all apps or of one."""
    rows = [row for row in workflow_reader.workflows(view, namespace) if app in (None, row.app)]
    return views.workflows(view, namespace, sorted(rows, key=lambda row: (row.app, row.name)))


def _line(change: Change) -> str:
    before, after = (text.clipped(output.to_json(one), MOST_SHOWN) for one in (change.before, change.after))
    value = {"added": after, "removed": before}.get(change.kind, f"{before} → {after}")
    if change.field is None:
        return f"{_SIGNS[change.kind]} step {change.step}: {value}"
    return f"{_SIGNS[change.kind]} {f'{change.step}.' if change.step else ''}{change.field}: {value}"


_COLUMNS: output.Columns[Workflow] = {
    "app": lambda one: one.app,
    "workflow": lambda one: f"{one.name}({job_parameters.signature(one.parameters)})",
    "version": lambda one: one.version,
    "steps": lambda one: one.step_count,
    "open runs": lambda one: one.open_count,
    "last run": lambda one: one.last_run.created_at if one.last_run else None,
    "status": lambda one: one.last_run.status.value if one.last_run else None,
    "paused": lambda one: text.pause(one.paused).removeprefix("paused "),
    "description": lambda one: one.description,
}
