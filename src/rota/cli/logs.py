"""`rota logs`: what an execution has written, while it runs and afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from rota.views.log import Log, LogLine

LOOK_S = 0.3
PATIENCE_S = 60.0
"""How long whoever follows waits for a database that is away."""
RETRY_S = 0.5
MOST = 1_000_000
HIGHEST_ATTEMPT = 2**31 - 1
OURS = "rota"
STREAMS = ("stdout", "stderr", "log", OURS)


class Reading:
    """Goes through the lines of one execution, from where it has come to."""

    def __init__(self, database: Database, id: str, attempt: int | None, stream: str | None) -> None:
        self._database = database
        self._id = id
        self._attempt = attempt
        self._stream = stream
        self._after = (0, 0)

    def skip_to_last(self, count: int) -> None:
        """Leaves out all but the last lines that there are now."""
        from rota.store import notes

        which = (self._database.namespace, self._id, count, self._attempt, self._stream)
        self._after = self._database.read(notes.before_last, *which)

    def pages(self, *, follow: bool) -> Iterator[list[LogLine]]:
        """All lines that there are; if asked to follow, also those to come, until there can be none."""
        is_last_look = not follow
        pause = threading.Event()
        while True:
            found = self._patient_look() if follow else self._look()
            if found.lines:
                self._after = (found.lines[-1].attempt, found.lines[-1].line)
                yield found.lines
            if found.is_full:
                continue
            if is_last_look:
                return
            # The last lines may come right after the end.
            is_last_look = found.is_over
            pause.wait(LOOK_S)

    def _look(self) -> Log:
        from rota.views import log as views

        which = (self._id, self._after, self._attempt, self._stream)
        return self._database.read(views.log, self._database.namespace, *which)

    def _patient_look(self) -> Log:
        """Waits for a database that is away for a while, because following takes long."""
        monotonic = self._database.clock.monotonic
        give_up_at: float | None = None
        while True:
            try:
                return self._look()
            except StoreUnavailable as error:
                if not error.may_pass or (give_up_at is not None and monotonic() > give_up_at):
                    raise
                if give_up_at is None:
                    give_up_at = monotonic() + PATIENCE_S
                    sys.stdout.flush()
                    output.message(f"trying again for {PATIENCE_S:g} s: {error}")
            self._database.hang_up()
            threading.Event().wait(RETRY_S)


@click.command()
@click.argument("id")
@click.option("--follow", "-f", is_flag=True, help="Go on with lines as they come, until the execution has ended.")
@click.option(
    "--attempt", type=click.IntRange(1, HIGHEST_ATTEMPT), metavar="N", help="Only lines of this attempt (default: all)."
)
@click.option("--stream", type=click.Choice(STREAMS), metavar="NAME", help=f"Only lines of {', '.join(STREAMS)}.")
@click.option("--limit", type=click.IntRange(1, MOST), metavar="N", help="Only the last N lines (default: all).")
@click.option("--times", is_flag=True, help="Put before each line when it was written, in UTC.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line, for programs.")
@with_database
def logs(
    database: Database,
    id: str,
    follow: bool,
    attempt: int | None,
    stream: str | None,
    limit: int | None,
    times: bool,
    as_json: bool,
) -> None:
    """Print what an execution has written: its output and its log.

    Any unique prefix of an ID works.

    \b
    rota logs 0197a3c2 --follow
    rota logs 0197a3c2 --stream stderr --limit 20
    """
    from rota.views import lookup

    full = database.read(lookup.execution_id, database.namespace, id)
    reading = Reading(database, full, attempt, stream)
    if limit is not None:
        reading.skip_to_last(limit)
    pages = reading.pages(follow=follow)
    if as_json and not follow:
        _print_array(pages)
    elif not _print_all(pages, times=times, as_json=as_json):
        output.message(f"execution {full} has {'no such lines' if attempt or stream else 'written nothing'}")


def _print_all(pages: Iterable[list[LogLine]], *, times: bool, as_json: bool) -> bool:
    """Line by line, as they come; returns whether there were any."""
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


def _print_array(pages: Iterable[list[LogLine]]) -> None:
    """A JSON array with one line per line, which need not fit into memory."""
    are_any = False
    for page in pages:
        print(",\n" if are_any else "[\n", ",\n".join(output.to_json(line) for line in page), sep="", end="")
        are_any = True
    print("\n]" if are_any else "[]")


def _print(line: LogLine, times: bool) -> None:
    """Rota's own remarks are no output of the job."""
    from rota.views.shape import rfc3339

    to = sys.stderr if line.stream == OURS else sys.stdout
    if to is sys.stderr:
        sys.stdout.flush()
    when = f"{rfc3339(line.at)} " if times else ""
    for part in text.harmless_lines(line.text):
        print(f"{when}{part}", file=to)
