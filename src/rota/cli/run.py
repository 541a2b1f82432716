"""`rota run`: shows one run of a workflow, and steers it."""

from __future__ import annotations

import json
import shutil
import sys

import click

from rota.cli import layout, output, run_next, run_picture, text
from rota.cli.arguments import parse
from rota.cli.database import Database, with_database
from rota.cli.failure import UNSUCCESSFUL
from rota.cli.options import Group, all_of, drawing_option, ids_argument, json_option, note_option, object_option
from rota.cli.run_watch import watch_run
from rota.domain import payload
from rota.domain.errors import UsageError
from rota.domain.status import Status
from rota.domain.workflow import drawing
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.letters import UNDECIDED
from rota.domain.workflow.retry import START
from rota.ids import IdSource
from rota.ops import control
from rota.ops.runs import approvals
from rota.ops.runs import pause as pausing
from rota.ops.runs import retry as retrying
from rota.ops.runs.approvals import Answer
from rota.ops.runs.retry import Request
from rota.store.port import View
from rota.views import lookup
from rota.views import run as views
from rota.views.execution import ExecutionStatus
from rota.views.run import RetryPlan, RunDetail
from rota.views.shape import Shape, shaped
from rota.views.step import status_word

_COLOURS = {
    "success": "#2da44e",
    "failed": "#cf222e",
    "cancelled": "#bf8700",
    "running": "#0969da",
    "skipped": "#8c959f",
    "blocked": "#8c959f",
}
id_argument = click.argument("id")


@click.group(cls=Group)
def run() -> None:
    """Show one run of a workflow; watch, retry and pause it; answer approvals.

    \b
    rota run show 1a2b3c4d
    rota run retry 1a2b3c4d --from load
    """


class Retried(RetryPlan, frozen=True):
    """A new run that repeats some steps of an ended one, or only the undos of some steps."""

    run_id: str
    replay_of: str
    retried_before: str | None
    """The last earlier retry of the same run."""


@run.command()
@id_argument
@object_option
@with_database
def show(database: Database, id: str, as_json: bool) -> None:
    """Show a run: its steps, when each ran and how it ended, and what to do.

    An ID may be shortened to its start, or to its last characters.

    \b
    rota run show 1a2b3c4d
    """
    found = database.read(_detail, database.namespace, id)
    if as_json:
        print(output.to_json(found, indent=2))
    else:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print("\n".join(run_picture.lines(found, columns)))


@run.command()
@id_argument
@click.option("--json", "as_json", is_flag=True, help="Print each step that changes, then the run: an object per line.")
@with_database
def watch(database: Database, id: str, as_json: bool) -> None:
    """Watch a run until it ends. The exit code is 0 if it succeeds, else 1.

    On a terminal the picture of `rota run show` is updated in place; elsewhere each change is a line.

    \b
    rota run watch 1a2b3c4d
    """
    full = database.read(lookup.run_id, database.namespace, id)
    if watch_run(database, full, as_json=as_json) is not Status.SUCCESS:
        click.get_current_context().exit(UNSUCCESSFUL)


@run.command()
@id_argument
@click.option("--from", "from_", metavar="STEP", help="This step and all after it; `start` for every step.")
@click.option(
    "--args",
    "args",
    metavar="OBJECT",
    help="Other arguments, as a JSON object: with --from start of the run, with --from STEP of that step.",
)
@click.option("--latest", is_flag=True, help="Use the version of the workflow in force, not that of the run.")
@object_option
@with_database
def retry(database: Database, id: str, from_: str | None, args: str | None, latest: bool, as_json: bool) -> None:
    """Repeat the failed steps of an ended run; a new run keeps the others.

    By default every step that failed, was cancelled, was blocked or was undone runs again, and everything after it. Of
    a map only the items without success run again, and of a sub-run only the steps without success. If undos of the run
    failed, these are repeated, and no step runs. Prints the id of the new run.

    \b
    rota run retry 1a2b3c4d
    rota run retry 1a2b3c4d --from load
    rota run retry 1a2b3c4d --from start --args '{"day": "2030-01-31"}'
    """
    full = database.read(lookup.run_id, database.namespace, id)
    before = database.read(views.run, database.namespace, full)
    request = _request(database, from_, args, latest=latest)
    new_id = IdSource(database.clock).new()
    database.transact(retrying.retry, database.namespace, full, new_id, database.actor, request)
    steps = database.read(views.run, database.namespace, new_id).steps
    plan = views.begun_retry(steps, before.retry.undos if before.retry and from_ is None else [])
    if as_json:
        about = shaped(Retried, plan, run_id=new_id, replay_of=full, retried_before=before.retried_as)
        print(output.to_json(about))
        return
    print(new_id)
    if before.retried_as is not None:
        output.message(f"the run was retried before, as {before.retried_as} ({before.retried_status})")
    output.message(run_next.plan_words(plan, steps))


@run.command()
@ids_argument
@json_option
@with_database
def cancel(database: Database, ids: tuple[str, ...], as_json: bool) -> None:
    """Cancel runs: no further step starts, and running steps are asked to stop.

    The exit code is 1 if one of them had already ended otherwise.

    \b
    rota run cancel 1a2b3c4d
    """
    found = [_known(database, id) for id in ids]
    after = {id: database.transact(control.cancel, database.namespace, id, database.actor) for id in found}
    if as_json:
        output.print_json_rows(ExecutionStatus(execution_id=id, status=status) for id, status in after.items())
    for id, status in after.items():
        if status is Status.RUNNING:
            output.message(f"{id} is stopping")
        else:
            ended = "is cancelled" if status is Status.CANCELLED else f"had already ended: {status}"
            output.message(f"{id} {ended}")
    if not {Status.CANCELLED, Status.RUNNING} >= set(after.values()):
        click.get_current_context().exit(UNSUCCESSFUL)


@run.command()
@id_argument
@note_option
@with_database
def pause(database: Database, id: str, note: str) -> None:
    """Start no further step of a run, nor of runs below it.

    Running steps continue. The timeout of the run is later by the length of the pause.

    \b
    rota run pause 1a2b3c4d --note "the warehouse is down"
    """
    full = _known(database, id)
    changed = database.transact(pausing.pause, database.namespace, full, database.actor, note)
    output.message(f"run {full} {'is paused' if changed else 'was paused already'}")


@run.command()
@id_argument
@with_database
def resume(database: Database, id: str) -> None:
    """Resume a paused run.

    \b
    rota run resume 1a2b3c4d
    """
    full = _known(database, id)
    changed = database.transact(pausing.resume, database.namespace, full, database.actor)
    output.message(f"run {full} {'resumed' if changed else 'was not paused'}")


class Answered(Shape, frozen=True):
    """An answer to an approval."""

    run_id: str
    step: str
    approved: bool
    by: str
    note: str


_answer_options = all_of(
    id_argument,
    click.argument("step", required=False),
    click.option("--note", default="", metavar="TEXT", help="A text that is stored with the answer."),
    object_option,
)


@run.command()
@_answer_options
@with_database
def approve(database: Database, id: str, step: str | None, note: str, as_json: bool) -> None:
    """Approve a step that waits for an answer.

    STEP may be left out if only one step of the run waits for an answer. The first answer wins.

    \b
    rota run approve 1a2b3c4d --note "checked on staging"
    """
    _answer(database, id, step, note, approved=True, as_json=as_json)


@run.command()
@_answer_options
@with_database
def reject(database: Database, id: str, step: str | None, note: str, as_json: bool) -> None:
    """Reject a step that waits for an answer.

    STEP may be left out if only one step of the run waits for an answer. The first answer wins.

    \b
    rota run reject 1a2b3c4d sign_off --note "not before Monday"
    """
    _answer(database, id, step, note, approved=False, as_json=as_json)


@run.command()
@id_argument
@drawing_option("Lines of text, a Mermaid flowchart, or Graphviz; the last two with a colour for each outcome.")
@with_database
def graph(database: Database, id: str, form: str) -> None:
    """Draw the graph of a run, as it was when the run opened.

    \b
    rota run graph 1a2b3c4d --format mermaid
    """
    found, letters = database.read(_graph, database.namespace, id)
    lines = [text.harmless(line) for line in _drawn(found, [status_word(letter) for letter in letters], form)]
    if form == "text" and sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        lines = [layout.cut(line, columns) for line in lines]
    print("\n".join(lines))


def _detail(view: View, namespace: str, part: str) -> RunDetail:
    return views.run(view, namespace, lookup.run_id(view, namespace, part))


def _graph(view: View, namespace: str, part: str) -> tuple[Graph, str]:
    row = views.run_row(view, namespace, lookup.run_id(view, namespace, part))
    found = views.run_graph(view, row)
    if found is None:
        number = row.version - row.base
        raise UsageError(f"version {number} of workflow {row.job}, which the run has, is not known any more")
    return found, row.letters or UNDECIDED * len(found.steps)


def _known(database: Database, part: str) -> str:
    """The id of a run. An execution that is not a run is refused."""
    full = database.read(lookup.run_id, database.namespace, part)
    return database.read(views.run_row, database.namespace, full).id


def _answer(database: Database, part: str, step: str | None, note: str, *, approved: bool, as_json: bool) -> None:
    id = _known(database, part)
    given = Answer(approved, database.actor, note, step)
    name = database.transact(approvals.answer, database.namespace, id, given)
    if as_json:
        print(output.to_json(Answered(run_id=id, step=name, approved=approved, by=database.actor, note=note)))
    else:
        output.message(f"step {name} of run {id} is {'approved' if approved else 'rejected'}")


def _request(database: Database, from_: str | None, args: str | None, *, latest: bool) -> Request:
    if args is None:
        return Request(from_=from_, latest=latest)
    if from_ is None:
        raise click.UsageError(f"--args: say whose arguments they are: --from {START} (the run) or --from STEP")
    given = parse((), args)
    if from_ != START:
        return Request(from_=from_, step_arguments={from_: given}, latest=latest)
    arguments = payload.encode(given, "--args", database.settings.max_payload_bytes)
    return Request(from_=from_, arguments=arguments, latest=latest)


def _drawn(graph: Graph, statuses: list[str], form: str) -> list[str]:
    """The drawing of a graph, with the status of each step."""
    lines: list[str] = getattr(drawing, form)(graph).splitlines()
    if form == "text":
        first, *rest = lines
        signs = [f"  {run_picture.sign(status)} " for status in statuses] + ["  "]
        return [first, *(before + line.removeprefix("  ") for before, line in zip(signs, rest, strict=False))]
    if form == "dot":
        lines.insert(2, "    node [style=filled, fillcolor=white];")
        colours = [
            f'    {json.dumps(step.id)} [fillcolor="{_COLOURS[status]}", fontcolor=white];'
            for step, status in zip(graph.steps, statuses, strict=True)
            if status in _COLOURS
        ]
        return [*lines[:-1], *colours, lines[-1]]
    for status, colour in _COLOURS.items():
        if numbers := [f"s{number}" for number, one in enumerate(statuses) if one == status]:
            lines.append(f"    classDef {status} fill:{colour},color:#fff")
            lines.append(f"    class {','.join(numbers)} {status}")
    return lines
