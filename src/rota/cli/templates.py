"""`rota templates`: definitions with parameters, from which jobs are made."""

from __future__ import annotations

from pathlib import Path

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import json_option, list_group
from rota.domain.errors import UsageError
from rota.ops import templates as ops
from rota.store import definition_reader as reader
from rota.views.template import Template, template

MOST = 10_000


@list_group
@json_option
@with_database
def templates(database: Database, as_json: bool) -> None:
    """List the templates of jobs; show, apply and delete them.

    A template is a definition with parameters. The HTTP API makes jobs of it.

    \b
    rota templates
    rota templates apply backup.json
    """
    found = [template(row) for row in database.read(reader.templates, database.namespace, None, MOST)]
    output.listing(found, _COLUMNS, as_json=as_json, empty="there are no templates yet", spare=["description"])


@templates.command()
@click.argument("name")
@with_database
def show(database: Database, name: str) -> None:
    """Print a template as JSON, in the form that `apply` takes.

    \b
    rota templates show backup > backup.json
    """
    row = database.read(reader.template, database.namespace, name)
    if row is None:
        raise _unknown(name)
    found = template(row)
    members = ("name", "description", "parameters", "job")
    print(output.to_json({member: getattr(found, member) for member in members}, indent=2))


@templates.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@with_database
def apply(database: Database, file: Path) -> None:
    """Create or replace a template from a file of JSON.

    The file has `name`, `parameters`, `job` and `description`. Jobs that were made of the template stay as they are.

    \b
    rota templates apply backup.json
    """
    from rota.api import body as bodies  # lazy: as other commands start faster without the API
    from rota.api import templating
    from rota.api.job_body import TemplateBody
    from rota.api.problem import Problem

    try:
        data = file.read_bytes()
        bodies.check_json(data)
        given: TemplateBody = bodies.decoded(data, TemplateBody)
        templating.check(given.job)
    except Problem as problem:
        raise UsageError(f"{file.name}: {problem.detail}") from None
    content = templating.content(given.job, given.parameters, given.description)
    row, is_new = database.transact(ops.put, database.namespace, given.name, content, database.actor)
    done = "is new" if is_new else f"has version {row.version}"
    output.message(f"template {row.name} {done}")


@templates.command()
@click.argument("name")
@with_database
def delete(database: Database, name: str) -> None:
    """Delete a template. Jobs that were made of it stay.

    \b
    rota templates delete backup
    """
    if not database.transact(ops.delete, database.namespace, name, database.actor):
        raise _unknown(name)
    output.message(f"template {name} is deleted; jobs that were made of it stay")


def _unknown(name: str) -> UsageError:
    return UsageError(f"there is no template {name!r}; `rota templates` lists them")


_COLUMNS: output.Columns[Template] = {
    "template": lambda one: one.name,
    "version": lambda one: one.version,
    "parameters": lambda one: ", ".join(one.parameters),
    "changed": lambda one: text.when(one.updated_at),
    "description": lambda one: one.description,
}
