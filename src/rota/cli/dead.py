"""`rota dead`: list dead letters, which are failed executions, and replay or discard them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.failure import UNSUCCESSFUL
from rota.cli.options import all_of, filter_options, json_option, list_group, page_options
from rota.domain.errors import Conflict, UsageError
from rota.ids import IdSource
from rota.ops import control
from rota.store.reader import Filter
from rota.views import dead_letter as views
from rota.views.execution import Replayed

PAGE = 500
_WHY_NOT = "it is no longer a dead letter, or results to keep are deleted: `rota run retry ID --from start`"


reason_option = click.option(
    "--reason", metavar="CODE", help="Only those that failed for this reason, such as retries_exhausted or timeout."
)


choice_options = all_of(
    click.argument("ids", nargs=-1, metavar="[ID…]"),
    click.option("--all", "every", is_flag=True, help="All dead letters that match the filters."),
    click.option("--yes", is_flag=True, help="Do not ask before acting on --all."),
    filter_options,
    reason_option,
    json_option,
)


@list_group
@filter_options
@reason_option
@page_options
@json_option
@with_database
def dead(database: Database, reason: str | None, as_json: bool, **wanted: Any) -> None:
    """List dead letters, newest first; replay and discard them.

    A dead letter is a failed execution that was neither replayed nor discarded.

    \b
    rota dead --job send --since 1d
    rota dead replay --all --error ConnectionError
    """
    found = database.read(views.dead_letters, database.namespace, Filter(**wanted), reason)
    more = f"--before {found.items[-1].execution_id}" if found.has_more else ""
    columns, empty, spare = output.of_one_app(found.items, _COLUMNS), "no dead letters match", ("queue", "reason")
    output.listing(found.items, columns, as_json=as_json, empty=empty, more=more, spare=spare)


@dead.command("replay")
@choice_options
@with_database
def dead_replay(database: Database, ids: tuple[str, ...], as_json: bool, **choice: Any) -> None:
    """Run dead letters again, each as a new execution.

    Of a run of a workflow only the steps without success run again, as by `rota run retry`.

    Prints the ids of the new executions if dead letters were named by id; for --all, only with --json.

    \b
    rota dead replay 1a2b3c4d
    rota dead replay --all --job send --since 1d
    """
    chosen = _chosen(database, "replay", ids, **choice)
    source = IdSource(database.clock)
    made: list[Replayed] = []

    def act(page: list[str]) -> None:
        successors = dict(zip(page, source.many(len(page)), strict=True))
        done = set(database.transact(control.replay, database.namespace, successors, database.actor))
        made.extend(Replayed(execution_id=new, replay_of=old) for old, new in successors.items() if new in done)

    _in_pages(chosen, "replay", act)
    if as_json:
        output.print_json_rows(made)
    elif ids:
        print("\n".join(one.execution_id for one in made))
    output.message(f"replayed {text.count(len(made), 'dead letter')}")
    if left := sorted(set(chosen) - {one.replay_of for one in made}):
        output.message(f"{text.count(len(left), 'dead letter')} not replayed, such as {left[0]}: {_WHY_NOT}")
        click.get_current_context().exit(UNSUCCESSFUL)


@dead.command("discard")
@choice_options
@with_database
def dead_discard(database: Database, ids: tuple[str, ...], as_json: bool, **choice: Any) -> None:
    """Take dead letters off the list; their history stays.

    \b
    rota dead discard --all --reason bad_arguments --yes
    """
    chosen = _chosen(database, "discard", ids, **choice)
    gone: list[int] = []

    def act(page: list[str]) -> None:
        gone.append(database.transact(control.discard, database.namespace, page, database.actor))

    _in_pages(chosen, "discard", act)
    if as_json:
        output.print_json_rows({"executionId": id} for id in chosen)
    output.message(f"discarded {text.count(sum(gone), 'dead letter')}")


_COLUMNS: output.Columns[views.DeadLetter] = {
    "id": lambda one: one.execution_id,
    "job": lambda one: f"{one.app}.{one.job}",
    "queue": lambda one: one.queue,
    "reason": lambda one: one.reason,
    "failed": lambda one: one.completed_at,
    "error": lambda one: text.first_line(one.error_message or ""),
}


def _chosen(
    database: Database, verb: str, ids: tuple[str, ...], every: bool, yes: bool, reason: str | None, **filters: Any
) -> list[str]:
    """The ids that the command line selects, oldest first, after the question that --all asks."""
    if ids and (every or reason is not None or Filter(**filters) != Filter()):
        raise click.UsageError("give ids, or --all with filters, not both")
    if ids:
        return database.read(views.named, database.namespace, ids)
    if not every:
        raise click.UsageError(f"say which: ids, or --all to {verb} every dead letter that matches the filters")
    chosen = database.read(views.every_id, database.namespace, Filter(**filters), reason)
    if chosen and not yes:
        _ask(f"{verb} {text.count(len(chosen), 'dead letter')}?")
    return chosen


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask at: confirm with --yes")
    if not click.confirm(question, err=True):
        output.message("nothing was done")
        click.get_current_context().exit(UNSUCCESSFUL)


def _in_pages(chosen: Sequence[str], verb: str, act: Callable[[list[str]], None]) -> None:
    """Runs one transaction per page of ids, with a progress bar; a refusal says how many were done before it."""
    with output.progress(len(chosen), f"{verb}ing") as advance:
        for start in range(0, len(chosen), PAGE):
            page = list(chosen[start : start + PAGE])
            try:
                act(page)
            except Conflict as refusal:
                refusal.args = (f"{refusal} ({start:,} of {len(chosen):,} were {verb}ed before)",)
                raise
            advance(len(page))
