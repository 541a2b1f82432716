"""The output of commands: tables and JSON on stdout, messages and progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from rota.cli import text
from rota.views import shape

Row = TypeVar("Row")
Cell = str | int | datetime | None
"""A time is shown relative to now, None as `-`."""
Columns = Mapping[str, Callable[[Row], Cell]]

_STYLES = {
    "success": "green",
    "failed": "red",
    "lost": "red",
    "fail": "red",
    "retrying": "yellow",
    "warn": "yellow",
    "running": "cyan",
    "live": "green",
    "ok": "green",
    "cancelled": "dim",
    "skipped": "dim",
}


def listing(rows: Sequence[Row], columns: Columns[Row], *, as_json: bool, empty: str, more: str = "") -> None:
    """Prints a list for people or for programs; `more` says how to get its next page, if there is one."""
    if as_json:
        print_json_rows(rows)
    elif rows:
        table(list(columns), [[cell(row) for cell in columns.values()] for row in rows])
    else:
        message(empty)
    if more:
        message(f"there are more: {more}, or a higher --limit")


def table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Columns in line; on a terminal coloured and fitted to it, otherwise complete."""
    safe = [[text.harmless(_shown(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(headings, safe)
    else:
        _plain_table(headings, safe)


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


def _shown(cell: Cell) -> str:
    if cell is None or isinstance(cell, datetime):
        return text.ago(cell)
    return str(cell)


def _plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(_width, column)) for column in zip(headings, *rows, strict=True)]
    for row in ([heading.upper() for heading in headings], *rows):
        padded = (cell + " " * (wide - _width(cell)) for cell, wide in zip(row, widths, strict=True))
        print("  ".join(padded).rstrip())


def _width(cell: str) -> int:
    """The columns of a terminal that a text takes."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def _rich_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        # Only ids are never cut: a shortened one cannot be copied.
        grid.add_column(heading.upper(), no_wrap=heading == "id", min_width=36 if heading == "id" else None)
    for row in rows:
        grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console().print(grid)
