"""Reads the logs, and the progress of attempts. Executions of other namespaces are not found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rota.domain.note import Line, Piece, State, expanded
from rota.domain.status import Status
from rota.ids import is_id
from rota.store.port import View
from rota.store.reader import known, unknown

START = (0, 0)
"""Before the first line: fence and number count from 1."""
END = (2**31 - 1, 2**31 - 1)
FIRST_PAGE, LARGEST_PAGE = 4, 64
"""How many pieces are read at once: few at first, because a piece may be long or have one line."""


def lines(
    view: View,
    namespace: str,
    id: str,
    after: tuple[int, int] = START,
    most: int = 1000,
    attempt: int | None = None,
    stream: str | None = None,
) -> list[Line]:
    """Up to `most` lines, in order, that follow the position `after`: a fence and the number of a line."""
    found: list[Line] = []
    for piece in _pieces(view, "pieces_after", after, namespace=namespace, id=id, attempt=attempt):
        behind = after[1] if piece.fence == after[0] else 0
        found += [line for line in expanded(piece) if line.number > behind and stream in (None, line.stream)]
        if len(found) >= most:
            break
        after = (piece.fence, piece.last)
    return found[:most]


def before_last(
    view: View, namespace: str, id: str, count: int, attempt: int | None = None, stream: str | None = None
) -> tuple[int, int]:
    """The position after which the last `count` lines follow."""
    which = {"namespace": namespace, "attempt": attempt, "texts": 0 if stream is None else 1}
    for piece in _pieces(view, "pieces_before", END, id=id, **which):
        numbers: Sequence[int] = range(piece.first, piece.last + 1)
        if stream is not None:
            numbers = [line.number for line in expanded(piece) if line.stream == stream]
        if count < len(numbers):
            return piece.fence, numbers[-1 - count]
        count -= len(numbers)
    return START


def state(view: View, namespace: str, id: str) -> State | None:
    """The last reported progress; None if there is none."""
    found = view.records("state_told", State, namespace=namespace, id=id) if is_id(id) else []
    return found[0] if found else None


def progress_told(view: View, ids: Sequence[str]) -> dict[str, tuple[float | None, float]]:
    """How much of how much is done, of those executions that have reported both."""
    return {id: (done, total) for id, done, total in view.rows("progress_told", ids=list(ids))}


def progress(view: View, namespace: str, id: str) -> tuple[Status, int]:
    """The status, and the fence of the last attempt: whether there can be more lines."""
    found = view.one("progress", namespace=namespace, id=known(id))
    if found is None:
        raise unknown(id)
    return Status(found[0]), found[1]


def _pieces(view: View, name: str, place: tuple[int, int], *, id: str, **which: Any) -> Iterator[Piece]:
    """All pieces from a position on, in the order of the statement, read page by page."""
    most = FIRST_PAGE
    while is_id(id):
        page = view.records(name, Piece, id=id, **which, fence=place[0], number=place[1], most=most)
        yield from page
        if len(page) < most:
            return
        place = (page[-1].fence, page[-1].last)
        most = min(2 * most, LARGEST_PAGE)
