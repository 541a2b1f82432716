"""Wake-ups: what happened, told after the commit to whoever may be waiting.

A hint may be lost, doubled or late and nothing breaks: every loop also polls. Hints only make the wait short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Something in these lanes may be claimed."""

    lanes: tuple[int, ...]


class Due(msgspec.Struct, frozen=True, tag="due"):
    """Something is scheduled for this instant."""

    at: int


class CancelAsked(msgspec.Struct, frozen=True, tag="cancel"):
    """This worker holds something that was asked to stop."""

    worker: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """These executions reached their end."""

    ids: tuple[str, ...]


Hint = Ready | Due | CancelAsked | Ended


class Listener(Protocol):
    """One receiver of hints; `fileno` becomes readable when some have come."""

    def fileno(self) -> int: ...

    def take(self) -> list[Hint]: ...

    def close(self) -> None: ...


class Bus(Protocol):
    """How hints travel between the processes that share a database."""

    def send(self, hints: Sequence[Hint]) -> None: ...

    def listen(self, *kinds: type[Hint]) -> Listener: ...

    def close(self) -> None: ...


def merged(hints: Iterable[Hint]) -> list[Hint]:
    """The same news in as few hints as possible."""
    lanes: set[int] = set()
    ended: list[str] = []
    due: int | None = None
    cancels: set[int] = set()
    for hint in hints:
        match hint:
            case Ready():
                lanes.update(hint.lanes)
            case Due():
                due = hint.at if due is None else min(due, hint.at)
            case CancelAsked():
                cancels.add(hint.worker)
            case Ended():
                ended.extend(hint.ids)
    result: list[Hint] = [CancelAsked(worker) for worker in sorted(cancels)]
    if lanes:
        result.append(Ready(tuple(sorted(lanes))))
    if due is not None:
        result.append(Due(due))
    if ended:
        result.append(Ended(tuple(ended)))
    return result
