"""Notes of a running attempt: the lines of its log, its progress, and the checkpoint for the next attempt.

A log is stored in pieces. The lines that an attempt writes to one stream within a millisecond or so are a run, and the
runs that are stored together are one piece, or a few if they are long.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

MOST_LINES = 1000
MOST_CHARACTERS = 64 * 1024


class Line(msgspec.Struct, frozen=True, array_like=True):
    """One line of an attempt's log. The number is its place among all lines of the attempt, starting at 1."""

    id: str
    fence: int
    number: int
    at: int
    stream: str
    """`stdout`, `stderr`, `log` for the logging module, or `rota` for remarks by Rota itself."""
    text: str


class Run(msgspec.Struct):
    """Lines of one attempt and one stream that came at the same time; their numbers follow one another."""

    first: int
    at: int
    stream: str
    texts: list[str]
    size: int
    """Characters, and one more for the end of each line."""

    def part(self, begin: int, end: int) -> Run:
        texts = self.texts[begin:end]
        return Run(self.first + begin, self.at, self.stream, texts, size_of(texts))


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Lines of one attempt in one row, without a gap between their numbers."""

    id: str
    fence: int
    last: int
    first: int
    text: str
    """JSON: time, stream and texts of each run."""


class State(msgspec.Struct, frozen=True, array_like=True):
    """Progress and checkpoint of an attempt. A field that is None leaves the stored value unchanged."""

    id: str
    fence: int
    at: int
    done: float | None = None
    total: float | None = None
    note: str | None = None
    checkpoint: str | None = None
    """JSON text, given back to the next attempt."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[tuple[int, str, list[str]]]).decode


def size_of(texts: list[str]) -> int:
    return sum(map(len, texts)) + len(texts)


def pieces(id: str, fence: int, runs: Iterable[Run]) -> list[Piece]:
    """The runs of one attempt, cut where a number is missing, and where a piece would become too long."""
    found: list[Piece] = []
    gathered: list[Run] = []
    after = lines = size = 0
    for run in runs:
        for part in _bounded(run):
            count = len(part.texts)
            is_too_much = lines + count > MOST_LINES or size + part.size > MOST_CHARACTERS
            if gathered and (part.first != after or is_too_much):
                found.append(_piece(id, fence, gathered))
                gathered, lines, size = [], 0, 0
            gathered.append(part)
            after = part.first + count
            lines += count
            size += part.size
    if gathered:
        found.append(_piece(id, fence, gathered))
    return found


def expanded(piece: Piece) -> list[Line]:
    """The lines of a piece, in their order."""
    found: list[Line] = []
    number = piece.first
    for at, stream, texts in _decode(piece.text):
        for text in texts:
            found.append(Line(piece.id, piece.fence, number, at, stream, text))
            number += 1
    return found


def _bounded(run: Run) -> list[Run]:
    """The run, in halves of halves if it is too long. A single line is never cut."""
    count = len(run.texts)
    if count <= 1 or (count <= MOST_LINES and run.size <= MOST_CHARACTERS):
        return [run]
    return [*_bounded(run.part(0, count // 2)), *_bounded(run.part(count // 2, count))]


def _piece(id: str, fence: int, runs: list[Run]) -> Piece:
    last = runs[-1].first + len(runs[-1].texts) - 1
    return Piece(id, fence, last, runs[0].first, _encode([(run.at, run.stream, run.texts) for run in runs]).decode())
