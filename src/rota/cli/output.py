"""What commands print: tables and JSON on stdout, messages and progress on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar

from rota.cli import text

Row = TypeVar("Row")
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
MANY_BRACKETS = 200
_TIMES = frozenset({"deadline", "lease_until"})
_JSON = frozenset({"arguments", "tags", "result", "error", "queues", "definition", "trouble"})


def listing(rows: Sequence[Row], columns: Columns[Row], *, as_json: bool, empty: str) -> None:
    """A list of rows, for people or for programs."""
    if as_json:
        print_json_rows(data(row) for row in rows)
    elif rows:
        table(list(columns), [[cell(row) for cell in columns.values()] for row in rows])
    else:
        message(empty)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns in line; on a terminal coloured and fitted to it, otherwise complete."""
    safe = [[text.harmless(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(headings, safe)
    else:
        _plain_table(headings, safe)


def print_json_rows(rows: Iterable[Any]) -> None:
    """A JSON array with one row per line, so that both `jq` and `grep` can read it."""
    lines = [to_json(row) for row in rows]
    print("[\n" + ",\n".join(lines) + "\n]" if lines else "[]")


def print_json(value: Any) -> None:
    print(to_json(value, indent=2))


def to_json(value: Any, indent: int | None = None) -> str:
    return text.harmless_json(json.dumps(value, ensure_ascii=False, indent=indent))


def data(row: Any) -> dict[str, Any]:
    """A row of the store as plain data: times as ISO 8601, stored JSON as what it stands for."""
    return {name: _value(name, getattr(row, name)) for name in row.__struct_fields__}


def decoded(stored: str | None) -> Any:
    """Stored JSON as a value; what cannot be read, or not be printed as JSON again, as the text that it is."""
    if stored is None:
        return None
    try:
        value = json.loads(stored, parse_float=_finite, parse_constant=_finite)
        if stored.count("[") + stored.count("{") > MANY_BRACKETS:
            json.dumps(value, indent=2)  # What can be read may still be too deep to be written.
        return value
    except (ValueError, RecursionError):
        return stored


def _finite(number: str) -> float:
    """JSON has no infinity, and to read 1e5000 gives one."""
    if not math.isfinite(value := float(number)):
        raise ValueError(number)
    return value


def short_error(stored: str | None) -> str:
    """The first line of a stored error."""
    first = error_words(decoded(stored)).strip().split("\n")[0]
    return text.clipped(first, 120)


def error_words(error: Any) -> str:
    """Kind and message of a decoded error, whatever is stored there."""
    if isinstance(error, dict) and {"type", "message"} <= error.keys():
        return f"{error['type']}: {str(error['message']).strip()}"
    return as_text(error) if error else ""


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


def _value(name: str, value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if name.endswith("_at") or name in _TIMES:
        return text.iso(value)
    if name in _JSON and isinstance(value, str):
        return decoded(value)
    return bool(value) if name == "final" else value


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
