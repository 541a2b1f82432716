"""`rota dead`: failed executions that nobody has replayed or discarded yet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import click

from rota import ids
from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.failure import NOT_WELL
from rota.cli.params import filter_options, instant, json_option, page_options
from rota.cli.show import resolved
from rota.cli.show import show as show_command
from rota.domain.errors import Conflict, UsageError

if TYPE_CHECKING:
    from rota.store.reader import DeadRow

PAGE = 500
F = TypeVar("F", bound=Callable[..., object])


@click.group(invoke_without_command=True)
@with_database
def dead(database: Database) -> None:
    """Dead letters: list, show, replay, discard.

    A dead letter is a failed execution that nobody has replayed or discarded yet. Without a sub-command, lists them.

    \b
    rota dead list --job send --since 1d
    rota dead replay --all --error ConnectionError
    """
    if click.get_current_context().invoked_subcommand is None:
        click.get_current_context().invoke(dead_list, limit=50)


reason_option = click.option(
    "--reason", metavar="CODE", help="Only those that failed for this reason, such as retries_exhausted or timeout."
)


def choice_options(function: F) -> F:
    """Which dead letters to act on."""
    options = (
        click.argument("ids", nargs=-1, metavar="[ID…]"),
        click.option("--all", "every", is_flag=True, help="All dead letters, or all that the filters let through."),
        click.option("--yes", is_flag=True, help="Do not ask before acting on --all."),
        filter_options,
        reason_option,
        json_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


@dead.command("list")
@filter_options
@reason_option
@page_options
@json_option
@with_database
def dead_list(
    database: Database,
    job: str | None = None,
    queue: str | None = None,
    error: str | None = None,
    since: datetime | None = None,
    reason: str | None = None,
    limit: int = 50,
    before: str | None = None,
    as_json: bool = False,
) -> None:
    """List dead letters, newest first."""
    from rota.store import reader

    wanted = reader.Filter(
        job=job, queue=queue, error=error, since=instant(since), before=before or ids.LAST_ID, limit=limit + 1
    )
    found = database.read(reader.dead, database.namespace, wanted, reason)
    rows, now = found[:limit], database.clock.now()
    columns: output.Columns[DeadRow] = {
        "id": lambda row: row.id,
        "job": lambda row: f"{row.app}.{row.job}",
        "queue": lambda row: row.queue,
        "reason": lambda row: row.reason,
        "failed": lambda row: text.ago(row.failed_at, now),
        "error": lambda row: output.short_error(row.error),
    }
    output.listing(rows, columns, as_json=as_json, empty="no dead letters match")
    if len(found) > limit:
        output.message(f"there are more: --before {rows[-1].id}, or a higher --limit")


@dead.command("show")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, for programs.")
@with_database
def dead_show(database: Database, id: str, as_json: bool) -> None:
    """Show one dead letter with its attempts and errors."""
    (full,) = _explicit(database, (id,))
    click.get_current_context().invoke(show_command, id=full, as_json=as_json)


@dead.command("replay")
@choice_options
@with_database
def dead_replay(
    database: Database,
    ids: tuple[str, ...],
    every: bool,
    yes: bool,
    job: str | None,
    queue: str | None,
    error: str | None,
    since: datetime | None,
    reason: str | None,
    as_json: bool,
) -> None:
    """Run dead letters again, each as a new execution.

    Prints the ids of the new executions of those that were named; for --all, only with --json.

    \b
    rota dead replay 0197a3c2
    rota dead replay --all --job send --since 1d
    """
    from rota.ids import IdSource
    from rota.ops import control

    chosen = _chosen(database, "replay", ids, every, yes, (job, queue, error, since, reason))
    source = IdSource(database.clock)
    made: list[dict[str, str]] = []

    def act(page: list[str]) -> None:
        successors = dict(zip(page, source.many(len(page)), strict=True))
        done = set(database.transact(control.replay, database.namespace, successors, database.actor))
        made.extend({"id": new, "replay_of": old} for old, new in successors.items() if new in done)

    _in_pages(chosen, ("replaying", "replayed"), act)
    if as_json:
        output.print_json_rows(made)
    elif ids:
        print("\n".join(row["id"] for row in made))
    output.message(f"replayed {text.count(len(made), 'dead letter')}")


@dead.command("discard")
@choice_options
@with_database
def dead_discard(
    database: Database,
    ids: tuple[str, ...],
    every: bool,
    yes: bool,
    job: str | None,
    queue: str | None,
    error: str | None,
    since: datetime | None,
    reason: str | None,
    as_json: bool,
) -> None:
    """Take dead letters off the list; their history stays.

    \b
    rota dead discard --all --reason bad_arguments --yes
    """
    from rota.ops import control

    chosen = _chosen(database, "discard", ids, every, yes, (job, queue, error, since, reason))
    gone: list[int] = []

    def act(page: list[str]) -> None:
        gone.append(database.transact(control.discard, database.namespace, page, database.actor))

    _in_pages(chosen, ("discarding", "discarded"), act)
    if as_json:
        output.print_json_rows({"id": id} for id in chosen)
    output.message(f"discarded {text.count(sum(gone), 'dead letter')}")


Given = tuple[str | None, str | None, str | None, datetime | None, str | None]


def _chosen(database: Database, verb: str, ids: tuple[str, ...], every: bool, yes: bool, given: Given) -> list[str]:
    """The dead letters that the command line means, oldest first, after the question that --all asks."""
    filtered = any(value is not None for value in given)
    if ids and (every or filtered):
        raise click.UsageError("give ids, or --all with filters, not both")
    if ids:
        return _explicit(database, ids)
    if not every:
        raise click.UsageError(f"say which: ids, or --all to {verb} every dead letter that the filters let through")
    chosen = _matching(database, given)
    if chosen and not yes:
        _ask(f"{verb} {text.count(len(chosen), 'dead letter')}?")
    return chosen


def _explicit(database: Database, prefixes: tuple[str, ...]) -> list[str]:
    from rota.store import reader

    found = database.read(resolved, database.namespace, prefixes)
    known = database.read(reader.are_dead, database.namespace, found)
    for id in found:
        if id not in known:
            raise UsageError(f"{id} is not a dead letter (any more); `rota dead list` lists them")
    return found


def _matching(database: Database, given: Given) -> list[str]:
    from rota.store import reader

    job, queue, error, since, reason = given
    chosen: list[str] = []
    while True:
        before = chosen[-1] if chosen else ids.LAST_ID
        wanted = reader.Filter(job=job, queue=queue, error=error, since=instant(since), before=before, limit=PAGE)
        rows = database.read(reader.dead, database.namespace, wanted, reason)
        chosen += [row.id for row in rows]
        if len(rows) < PAGE:
            return chosen[::-1]


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Say --yes, because there is no terminal to ask at")
    if not click.confirm(question, err=True):
        output.message("nothing was done")
        click.get_current_context().exit(NOT_WELL)


def _in_pages(chosen: Sequence[str], words: tuple[str, str], act: Callable[[list[str]], None]) -> None:
    """One transaction per page of ids, with a bar; a refusal in the middle says how far it came."""
    doing, done = words
    with output.progress(len(chosen), doing) as advance:
        for start in range(0, len(chosen), PAGE):
            page = list(chosen[start : start + PAGE])
            try:
                act(page)
            except Conflict as refusal:
                refusal.args = (f"{refusal} ({start:,} of {len(chosen):,} were {done} before)",)
                raise
            advance(len(page))
