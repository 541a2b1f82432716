"""Wake-ups: what happened, told after the commit to whoever may be waiting.

A hint may be lost, doubled or late and nothing breaks: every loop also polls. Hints only make the wait short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

FIRST_RANK = -(2**63)


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Something in these lanes may be claimed; for each lane, the lowest rank that is new in it."""

    lanes: dict[int, int]
    is_look: bool = False
    """Whether this is what a supervisor found when it looked, as it does again and again."""

    @classmethod
    def of(cls, places: Iterable[tuple[int, int]]) -> Ready:
        """From lanes and ranks."""
        lowest: dict[int, int] = {}
        for lane, rank in places:
            lowest[lane] = min(rank, lowest.get(lane, rank))
        return cls(lowest)


class Due(msgspec.Struct, frozen=True, tag="due"):
    """Something is scheduled for this instant."""

    at: int


class CancelAsked(msgspec.Struct, frozen=True, tag="cancel"):
    """This worker holds something that was asked to stop."""

    worker: int


class Wanted(msgspec.Struct, frozen=True, tag="wanted"):
    """Somebody waits for the end of these executions. Where hints are dear, only such ends are told."""

    ids: tuple[str, ...]


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """These executions reached their end."""

    ids: tuple[str, ...]


Hint = Ready | Due | CancelAsked | Wanted | Ended


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
    lanes: dict[int, int] = {}
    ended: list[str] = []
    wanted: list[str] = []
    due: int | None = None
    cancels: set[int] = set()
    for hint in hints:
        match hint:
            case Ready():
                for lane, rank in hint.lanes.items():
                    lanes[lane] = min(rank, lanes.get(lane, rank))
            case Due():
                due = hint.at if due is None else min(due, hint.at)
            case CancelAsked():
                cancels.add(hint.worker)
            case Wanted():
                wanted.extend(hint.ids)
            case Ended():
                ended.extend(hint.ids)
    result: list[Hint] = [CancelAsked(worker) for worker in sorted(cancels)]
    if lanes:
        result.append(Ready(lanes))
    if due is not None:
        result.append(Due(due))
    if wanted:
        result.append(Wanted(tuple(wanted)))
    if ended:
        result.append(Ended(tuple(ended)))
    return result
