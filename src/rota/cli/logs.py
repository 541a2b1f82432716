"""`rota logs`: the lines that an execution has written, while it runs and afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import number
from rota.domain.errors import StoreUnavailable
from rota.store import notes, run_reader
from rota.views import log as views
from rota.views import lookup
from rota.views.log import Log, LogLine, Position
from rota.views.shape import rfc3339

LOOK_S = 0.3
PATIENCE_S = 60.0
"""How long `--follow` waits for a database that cannot be reached."""
RETRY_S = 0.5
MOST = 1_000_000
HIGHEST_FENCE = 2**31 - 1
OURS = "rota"
STREAMS = ("stdout", "stderr", "log", OURS)


@click.command()
@click.argument("id")
@click.option("--follow", "-f", is_flag=True, help="Print new lines as they come, until the execution has ended.")
@click.option("--fence", type=number(HIGHEST_FENCE), metavar="N", help="Only lines of the attempt with this fence.")
@click.option("--stream", type=click.Choice(STREAMS), metavar="NAME", help=f"Only lines of {', '.join(STREAMS)}.")
@click.option("--limit", type=number(MOST), metavar="N", help="Only the last N lines (default: all).")
@click.option("--times", is_flag=True, help="Start each line with the time at which it was written, in UTC.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
@with_database
def logs(
    database: Database,
    id: str,
    follow: bool,
    fence: int | None,
    stream: str | None,
    limit: int | None,
    times: bool,
    as_json: bool,
) -> None:
    """Print the output and the log of an execution.

    An ID may be shortened to its start, or to its last characters.

    \b
    rota logs 1a2b3c4d --follow
    rota logs 1a2b3c4d --stream stderr --limit 20
    """
    full, after = database.read(lookup.execution_id, database.namespace, id), (0, 0)
    if limit is not None:
        after = database.read(notes.before_last, database.namespace, full, limit, fence, stream)
    pages = _pages(database, full, after, fence, stream, follow=follow)
    if as_json and not follow:
        output.print_json_rows(line for page in pages for line in page)
    elif not _print_all(pages, times=times, as_json=as_json):
        is_run = database.read(run_reader.is_run, database.namespace, full)
        output.message(_nothing(full, is_run=is_run, is_filtered=bool(fence or stream)))


def _nothing(id: str, *, is_run: bool, is_filtered: bool) -> str:
    if is_run:
        return f"a run writes nothing itself; its steps do: rota executions --run {id}"
    return f"execution {id} has {'no such lines' if is_filtered else 'written nothing'}"


def _pages(
    database: Database, id: str, after: Position, fence: int | None, stream: str | None, *, follow: bool
) -> Iterator[list[LogLine]]:
    """Yields the lines after a position. With `follow`, waits for new lines until the execution has ended."""
    is_last_look = not follow
    while True:
        found = _look(database, id, after, fence, stream, patience_s=PATIENCE_S if follow else 0.0)
        if found.lines:
            after = (found.lines[-1].fence, found.lines[-1].line)
            yield found.lines
        if found.is_full:
            continue
        if is_last_look:
            return
        # The last lines may be written right after the end of the execution, so look once more.
        is_last_look = found.is_over
        threading.Event().wait(LOOK_S)


def _look(
    database: Database, id: str, after: Position, fence: int | None, stream: str | None, *, patience_s: float
) -> Log:
    """Reads one page; retries for `patience_s` while the database cannot be reached."""
    give_up_at: float | None = None
    while True:
        try:
            return database.read(views.log, database.namespace, id, after, fence, stream)
        except StoreUnavailable as error:
            now = database.clock.monotonic()
            if not error.may_pass or not patience_s or (give_up_at is not None and now > give_up_at):
                raise
            if give_up_at is None:
                give_up_at = now + patience_s
                sys.stdout.flush()
                output.message(f"trying again for {patience_s:g} s: {error}")
        database.hang_up()
        threading.Event().wait(RETRY_S)


def _print_all(pages: Iterable[list[LogLine]], *, times: bool, as_json: bool) -> bool:
    """Prints lines as they come; returns whether there were any."""
    are_any = False
    for page in pages:
        are_any = True
        for line in page:
            if as_json:
                print(output.to_json(line))
            else:
                _print(line, times)
        sys.stdout.flush()
    return are_any


def _print(line: LogLine, times: bool) -> None:
    """Rota's own remarks go to stderr: they are not output of the job."""
    to = sys.stderr if line.stream == OURS else sys.stdout
    if to is sys.stderr:
        sys.stdout.flush()
    when = f"{rfc3339(line.at)} " if times else ""
    for part in text.harmless_lines(line.text):
        print(f"{when}{part}", file=to)
