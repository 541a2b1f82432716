"""Short words for what attempts tell, and for reading it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rota.domain.note import Line, State
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


def write(world: World, lines: Sequence[Line] = (), states: Sequence[State] = ()) -> list[str]:
    return world.store.transact(writing.write, lines, states)


def tell(world: World, attempt: Attempt, **told: Any) -> list[str]:
    return write(world, states=[State(attempt.id, attempt.fence, world.clock.now(), **told)])


def lines(world: World, id: str, **wanted: Any) -> list[Line]:
    return world.store.read(notes.lines, NAMESPACE, id, **wanted)


def told(world: World, id: str) -> tuple[float | None, float | None, str | None, str | None] | None:
    state = world.store.read(notes.state, NAMESPACE, id)
    return None if state is None else (state.done, state.total, state.note, state.checkpoint)
