"""What an attempt tells while it runs: lines of its log, how far it is, and the state from which another can go on."""

from __future__ import annotations

import msgspec


class Line(msgspec.Struct, frozen=True, array_like=True):
    """One line of an attempt's log. The number is its place among all lines of the attempt, starting at 1."""

    id: str
    fence: int
    number: int
    at: int
    stream: str
    """`stdout`, `stderr`, `log` for what was logged, or `rota` for what we have to say about it."""
    text: str


class State(msgspec.Struct, frozen=True, array_like=True):
    """How an attempt stands. What is None is left as it was."""

    id: str
    fence: int
    at: int
    done: float | None = None
    total: float | None = None
    note: str | None = None
    checkpoint: str | None = None
    """JSON text, given back to the next attempt."""
