"""The output of commands: tables and JSON on stdout, messages and progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from rota.cli import layout, text
from rota.cli.layout import Cell
from rota.views import shape

Row = TypeVar("Row")
Columns = Mapping[str, Callable[[Row], Cell]]


class OfApp(Protocol):
    """A row of a list that names a job."""

    @property
    def app(self) -> str: ...
    @property
    def job(self) -> str: ...


def listing(
    rows: Sequence[Row],
    columns: Columns[Row],
    *,
    as_json: bool,
    empty: str,
    more: str = "",
    spare: Sequence[str] = (),
    whole: str | None = None,
) -> None:
    """Prints a list for people or for programs; `more` says how to get its next page, if there is one."""
    if as_json:
        print_json_rows(rows)
    elif rows:
        layout.table(list(columns), [[cell(row) for cell in columns.values()] for row in rows], spare, whole)
    else:
        message(empty)
    if more:
        message(f"more: {more}, or a higher --limit")


def of_one_app(rows: Sequence[OfApp], columns: Columns[Any]) -> Columns[Any]:
    """On a terminal without the app in front of the jobs' names, if it is the same in all rows."""
    is_one = sys.stdout.isatty() and len({row.app for row in rows}) == 1
    return {**columns, "job": lambda one: one.job} if is_one else columns


def print_json_rows(rows: Iterable[Any]) -> None:
    """Prints a JSON array with one row per line, for `jq` and for `grep`; it need not fit into memory."""
    before = "[\n"
    for row in rows:
        print(before, to_json(row), sep="", end="")
        before = ",\n"
    print("[]" if before == "[\n" else "\n]")


def to_json(value: Any, indent: int | None = None) -> str:
    """The JSON of a shape or of plain values."""
    return text.harmless_json(shape.to_json(value, indent))


def as_text(value: Any) -> str:
    """A decoded value for people: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else to_json(value)


def message(words: str) -> None:
    """Prints a line on stderr, for everything that is not data."""
    print(text.harmless(words), file=sys.stderr)


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr; nothing if stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda step: bar.advance(task, step)
