"""The answer to a stream of lines: what was committed and refused, merged as long as it is not sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from rota.api.problem import Problem


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """The first and the last line of a chunk; lines count from 1."""

    from_: int = msgspec.field(name="from")
    """The first line."""
    to: int
    """The last line, which belongs to it."""


class ShortProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a line was refused."""

    code: str
    pointer: str | msgspec.UnsetType = msgspec.UNSET
    detail: str | msgspec.UnsetType = msgspec.UNSET
    status: int | msgspec.UnsetType = msgspec.UNSET
    """The HTTP status that the problem would have alone."""


class RefusedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was not accepted."""

    line: int
    problem: ShortProblem
    """Why the line was refused."""


class Stopped(RefusedLine, frozen=True, kw_only=True, rename="camel"):
    """Where a stream ended early, and after how many seconds the rest may be sent."""

    retry_after: float | msgspec.UnsetType = msgspec.UNSET
    """After how many seconds the rest may be sent."""


class LineTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How many lines were accepted and refused."""

    accepted: int
    """How many lines were accepted."""
    refused: int
    """How many lines were refused."""


class LineAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the answer to NDJSON: of a chunk that was committed, or the last one: `done` or `stopped`."""

    committed: Lines | msgspec.UnsetType = msgspec.UNSET
    """The lines that were committed since the last answer."""
    refused: list[RefusedLine] | msgspec.UnsetType = msgspec.UNSET
    """The refused lines among them."""
    ids: list[str] | msgspec.UnsetType = msgspec.UNSET
    """The ids of what was accepted, with `answer=ids`."""
    done: LineTotals | msgspec.UnsetType = msgspec.UNSET
    """The sums at the end of a stream that ended well."""
    stopped: Stopped | msgspec.UnsetType = msgspec.UNSET
    """Where and why the stream ended early."""


class LineAnswers:
    """Written by the task that reads lines, sent by another one. Nothing here waits for the client."""

    def __init__(self, *, with_ids: bool) -> None:
        self._with_ids = with_ids
        self._first: int | None = None
        self._last = 0
        self._refused: list[dict[str, Any]] = []
        self._ids: list[list[str]] = []
        self._end: dict[str, Any] | None = None
        self._is_closed = False
        self._changed = asyncio.Event()
        self._accepted = self._refusals = 0

    @property
    def next_line(self) -> int:
        """The first line that was not told of."""
        return self._last + 1

    def committed(
        self, first: int, last: int, accepted: int, refused: Sequence[tuple[int, Problem]], ids: list[str]
    ) -> None:
        self._first = first if self._first is None else self._first
        self._last = last
        self._refused += [{"line": line, "problem": _short(problem)} for line, problem in refused]
        if self._with_ids:
            self._ids.append(ids)
        self._accepted += accepted
        self._refusals += len(refused)
        self._changed.set()

    def stop(self, line: int, problem: Problem) -> None:
        after = {} if problem.retry_after is None else {"retryAfter": round(problem.retry_after, 3)}
        shown = {"code": problem.code, "detail": problem.detail, "status": problem.status}
        self._end = {"stopped": {"line": line, "problem": shown, **after}}
        self._changed.set()

    def done(self) -> None:
        self._end = {"done": {"accepted": self._accepted, "refused": self._refusals}}
        self._changed.set()

    def close(self) -> None:
        """Ends the answer without a last line, which says that it did not end well."""
        self._is_closed = True
        self._changed.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The lines of the answer, as they come."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if text := self._taken():
                yield text
            if self._end is not None:
                yield _line(self._end)
                return
            if self._is_closed:
                return

    def _taken(self) -> bytes:
        if self._first is None:
            return b""
        found: dict[str, Any] = {"committed": {"from": self._first, "to": self._last}, "refused": self._refused}
        if self._with_ids:
            found["ids"] = [id for ids in self._ids for id in ids]
        self._first, self._refused, self._ids = None, [], []
        return _line(found)


def _short(problem: Problem) -> dict[str, str]:
    """A problem cut to its code and pointer."""
    found = {"code": problem.code}
    if problem.flaws and problem.flaws[0].pointer is not None:
        found["pointer"] = problem.flaws[0].pointer
    return found


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"
