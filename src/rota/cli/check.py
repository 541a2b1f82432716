"""`rota check` and `rota graph`: the workflows of an app from its code, without a database."""

from __future__ import annotations

import click

from rota.cli import layout, output
from rota.cli.apps import import_app
from rota.cli.failure import UNSUCCESSFUL
from rota.cli.options import drawing_option, json_option
from rota.domain.errors import DefinitionError, UsageError, WorkflowError
from rota.sdk.app import App


@click.command()
@click.argument("app")
@json_option
def check(app: str, as_json: bool) -> None:
    """Build every workflow of an app, and print what is wrong.

    It needs no database. The exit code is 1 if anything is wrong.

    \b
    rota check shop:app
    """
    loaded = import_app(app)
    found = {name: workflow.problems() for name, workflow in loaded.workflows.items()}
    steps = {name: len(loaded.workflows[name].graph().steps) for name in found if not found[name]}
    others = [] if any(found.values()) else _others(loaded)
    if as_json:
        output.print_json_rows(
            {"workflow": name, "steps": steps.get(name), "problems": [_as_data(one) for one in problems]}
            for name, problems in found.items()
        )
    elif steps:
        layout.table(["workflow", "steps"], [[name, count] for name, count in steps.items()])
    elif not found:
        output.message(f"app {loaded.name} has no workflows")
    problems = [str(one) for several in found.values() for one in several] + others
    for problem in problems:
        output.message(f"rota: {problem}")
    if problems:
        click.get_current_context().exit(UNSUCCESSFUL)


@click.command()
@click.argument("app")
@click.argument("workflow", required=False)
@drawing_option("Lines of text, a Mermaid flowchart, or Graphviz.")
def graph(app: str, workflow: str | None, form: str) -> None:
    """Draw one workflow of an app, or all of them.

    It needs no database.

    \b
    rota graph shop:app
    rota graph shop:app publish --format mermaid
    """
    loaded = import_app(app)
    if workflow is not None and workflow not in loaded.workflows:
        known = ", ".join(loaded.workflows) or "none"
        raise UsageError(f"app {loaded.name!r} has no workflow {workflow!r}; it has {known}")
    chosen = [workflow] if workflow is not None else list(loaded.workflows)
    if not chosen:
        output.message(f"app {loaded.name} has no workflows")
    for number, name in enumerate(chosen):
        if number:
            print()
        print(getattr(loaded.workflows[name], form)())


def _others(app: App) -> list[str]:
    """The errors in the declarations other than workflows."""
    try:
        app.check()
    except DefinitionError as error:
        return [str(error)]
    return []


def _as_data(error: WorkflowError) -> dict[str, object]:
    return {
        "message": str(error),
        "file": error.file,
        "line": error.line,
        "expression": error.expression or None,
        "pointer": error.pointer or None,
    }
