"""Tables and paragraphs: on a terminal coloured and fitted to its width, elsewhere complete and plain."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime

import click

from rota.cli import text
from rota.domain.status import Status
from rota.views import state_marks

Cell = str | int | datetime | None
"""A time is shown relative to now, None as `-`."""

GAP = "  "
WIDE_TEXT = 40
"""Where texts have less room than this, ids are shortened."""
NARROW_TEXT = 24
"""Where texts have less room than this, columns are left out."""
LEAST_TEXT = text.SHORT_ID + 1
"""Ids and statuses are never cut."""
_OTHER_WORDS = {"live": "green", "ok": "green", "lost": "red", "fail": "red", "open": "red", "warn": "yellow"}
_COLOUR_OF = {**{str(status): state_marks.terminal_colour(status) for status in Status}, **_OTHER_WORDS}


def table(
    headings: Sequence[str], rows: Sequence[Sequence[Cell]], spare: Sequence[str] = (), whole: str | None = None
) -> None:
    """Columns in line; on a terminal coloured and fitted to it, otherwise complete.

    A narrow terminal leaves out the columns `spare`, the first of them first, and cuts the longest texts. The column
    `whole` is cut only when all spare ones are left out.
    """
    shown = [[text.harmless(_shown(cell)) for cell in row] for row in rows]
    columns = {heading: list(cells) for heading, *cells in zip(headings, *shown, strict=True)}
    if sys.stdout.isatty():
        columns = _fitted(columns, spare, whole, shutil.get_terminal_size().columns)
    widths = [_width_of(heading, cells) for heading, cells in columns.items()]
    _print_row([heading.upper() for heading in columns], widths, bold=True)
    for row in zip(*columns.values(), strict=True):
        _print_row(row, widths)


def paragraph(labels: Mapping[str, int], words: str) -> None:
    """Prints words after labels of these widths; on a terminal in lines that begin under each other."""
    before, words = sum(labels.values()), text.harmless(words)
    if sys.stdout.isatty():
        room = max(NARROW_TEXT, shutil.get_terminal_size().columns - before)
        lines = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False)
        words = f"\n{' ' * before}".join(lines)
    print(*(_styled(label) + " " * (wide - len(label)) for label, wide in labels.items()), words, sep="")


def _shown(cell: Cell) -> str:
    if cell is None or isinstance(cell, datetime):
        return text.ago(cell)
    return f"{cell:,}" if isinstance(cell, int) else cell


def _fitted(columns: dict[str, list[str]], spare: Sequence[str], whole: str | None, room: int) -> dict[str, list[str]]:
    """The columns that have something to say, as far as there is room for them."""
    left = {heading: cells for heading, cells in columns.items() if set(cells) - {"", "-"} or not cells}
    widths = {heading: _width_of(heading, cells) for heading, cells in left.items()}
    if "id" in widths and _total(widths, WIDE_TEXT) > room:
        left["id"] = [text.short_id(cell) for cell in left["id"]]
        widths["id"] = _width_of("id", left["id"])
    for heading in spare:
        if _total(widths, NARROW_TEXT, whole) > room:
            widths.pop(heading, None)
    most = next((most for most in range(room, LEAST_TEXT, -1) if _total(widths, most) <= room), LEAST_TEXT)
    return {heading: [cut(cell, max(most, len(heading))) for cell in left[heading]] for heading in widths}


def _total(widths: Mapping[str, int], most: int, whole: str | None = None) -> int:
    """How wide a table is whose texts are cut to `most`. A column is never narrower than its heading."""
    cut = [wide if heading == whole else max(len(heading), min(most, wide)) for heading, wide in widths.items()]
    return sum(cut) + len(GAP) * (len(widths) - 1)


def _width_of(heading: str, cells: Sequence[str]) -> int:
    return max(map(width, [heading, *cells]))


def width(cell: str) -> int:
    """The columns of a terminal that a text takes."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def cut(cell: str, most: int) -> str:
    """The text, if need be shortened to this many columns."""
    if width(cell) <= most:
        return cell
    while width(cell) > most - 1:
        cell = cell[: min(len(cell) - 1, most - 1)]
    return cell.rstrip() + "…"


def _print_row(row: Sequence[str], widths: Sequence[int], *, bold: bool = False) -> None:
    padding = [" " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)]
    print(GAP.join(_styled(cell, bold=bold) + space for cell, space in zip(row, padding, strict=True)).rstrip())


def _styled(cell: str, *, bold: bool = False) -> str:
    """Words such as `failed` have their own colour."""
    has_colour = cell and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return click.style(cell, fg=_COLOUR_OF.get(cell), bold=bold or None) if has_colour else cell
