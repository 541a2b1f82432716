"""What commands print: tables and JSON on stdout, messages and progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from rota.cli import text

if TYPE_CHECKING:
    import msgspec

    from rota.views.shape import Page

Row = TypeVar("Row", bound="msgspec.Struct")
Columns = Mapping[str, Callable[[Row], str]]

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


def listing(rows: Sequence[Row], columns: Columns[Row], *, as_json: bool, empty: str) -> None:
    """A list of shapes, for people or for programs."""
    if as_json:
        print_json_rows(rows)
    elif rows:
        table(list(columns), [[cell(row) for cell in columns.values()] for row in rows])
    else:
        message(empty)


def paged(found: Page[Row], columns: Columns[Row], *, as_json: bool, empty: str, more: Callable[[Row], str]) -> None:
    """A list of which there may be more; `more` says how to get it, from the last row."""
    listing(found.items, columns, as_json=as_json, empty=empty)
    if found.has_more:
        message(f"there are more: {more(found.items[-1])}, or a higher --limit")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns in line; on a terminal coloured and fitted to it, otherwise complete."""
    safe = [[text.harmless(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(headings, safe)
    else:
        _plain_table(headings, safe)


def print_json_rows(rows: Iterable[Any]) -> None:
    """A JSON array with one shape per line, so that both `jq` and `grep` can read it."""
    lines = [to_json(row) for row in rows]
    print("[\n" + ",\n".join(lines) + "\n]" if lines else "[]")


def print_json(shape: msgspec.Struct) -> None:
    print(to_json(shape, indent=2))


def to_json(value: Any, indent: int | None = None) -> str:
    """A shape, or a value that JSON has."""
    import msgspec

    return text.harmless_json(json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=indent))


def as_text(value: Any) -> str:
    """A decoded value for people: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else to_json(value)


def message(words: str) -> None:
    """Something to know that is not data."""
    print(text.harmless(words), file=sys.stderr)


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while something long goes on; nothing if nobody looks."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda step: bar.advance(task, step)


def _plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(text.width(cell) for cell in column) for column in zip(headings, *rows, strict=True)]
    for row in ([heading.upper() for heading in headings], *rows):
        padded = (cell + " " * (wide - text.width(cell)) for cell, wide in zip(row, widths, strict=True))
        print("  ".join(padded).rstrip())


def _rich_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        # An id that is cut cannot be copied; everything else may give way.
        grid.add_column(heading.upper(), no_wrap=heading == "id", min_width=36 if heading == "id" else None)
    for row in rows:
        grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console().print(grid)
