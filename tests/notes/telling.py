"""Helpers to write and read log lines and states of attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rota.domain.note import Line, Piece, Run, State, pieces
from rota.ops import notes as writing
from rota.store import notes
from tests.support.world import NAMESPACE, World


class Attempt(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def fence(self) -> int: ...


def some_lines(attempt: Attempt, count: int, first: int = 1, stream: str = "stdout") -> list[Line]:
    return [
        Line(attempt.id, attempt.fence, number, 1000 + number, stream, f"line {number}")
        for number in range(first, first + count)
    ]


def cut(lines: Sequence[Line]) -> list[Piece]:
    """Lines as they are written: in the order of each attempt's, those of one time and stream in one run."""
    logs: dict[tuple[str, int], list[Run]] = {}
    for line in lines:
        runs = logs.setdefault((line.id, line.fence), [])
        last = runs[-1] if runs else None
        size = len(line.text) + 1
        if last and (last.first + len(last.texts), last.at, last.stream) == (line.number, line.at, line.stream):
            last.texts.append(line.text)
            last.size += size
        else:
            runs.append(Run(line.number, line.at, line.stream, [line.text], size))
    return [piece for (id, fence), runs in logs.items() for piece in pieces(id, fence, runs)]


def write(world: World, lines: Sequence[Line] = (), states: Sequence[State] = ()) -> list[str]:
    return world.store.transact(writing.write, cut(lines), states)


def write_apart(world: World, lines: Sequence[Line]) -> None:
    """Each line as a chunk of its own."""
    world.store.transact(writing.write, [piece for line in lines for piece in cut([line])], [])


def tell(world: World, attempt: Attempt, **told: Any) -> list[str]:
    return write(world, states=[State(attempt.id, attempt.fence, world.clock.now(), **told)])


def lines(world: World, id: str, **wanted: Any) -> list[Line]:
    return world.store.read(notes.lines, NAMESPACE, id, **wanted)


def told(world: World, id: str) -> tuple[float | None, float | None, str | None, str | None] | None:
    state = world.store.read(notes.state, NAMESPACE, id)
    return None if state is None else (state.done, state.total, state.note, state.checkpoint)
