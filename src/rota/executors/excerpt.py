"""The lines of source around the user's own frames of a traceback, read while the code that failed is still there.

A traceback has one line of each frame. A person who reads it later, on another machine and perhaps after a deploy, sees
with the lines before and after it what the code was about to do.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from traceback import FrameSummary, TracebackException

from rota.domain.error_fingerprint import is_own
from rota.domain.outcome import Excerpt

MOST = 20
"""Frames of the user's code with lines around them, of an error and its causes together."""
AROUND = 1
"""Lines before the one in the traceback, and as many after it."""


def excerpts(error: TracebackException) -> list[Excerpt]:
    """The innermost frames of the error first, and then those of its causes."""
    places = dict.fromkeys(
        (frame.filename, frame.lineno)
        for one in _with_causes(error)
        for frame in reversed(one.stack)
        if _has_own_source(frame)
    )
    found = [_excerpt(file, line) for file, line in list(places)[:MOST] if line is not None]
    return [one for one in found if one.lines]


def _with_causes(error: TracebackException) -> Iterator[TracebackException]:
    """The chain that a traceback prints. TracebackException has left out repetitions in it."""
    found: TracebackException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


def _has_own_source(frame: FrameSummary) -> bool:
    return bool(frame.lineno and frame.line) and is_own(frame.filename.replace("\\", "/"))


def _excerpt(file: str, line: int) -> Excerpt:
    lines = [(number, linecache.getline(file, number)) for number in range(line - AROUND, line + AROUND + 1)]
    there = [(number, text.rstrip()) for number, text in lines if text]
    first = there[0][0] if there else line
    return Excerpt(file, line, first, [text for _, text in there])
