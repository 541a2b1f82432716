"""Wake-ups that are sent after a commit to the processes that may be waiting for it.

A hint may be lost, doubled or late and nothing breaks, because every loop also polls. Hints only shorten the wait.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Annotated, Protocol

import msgspec

from rota.clock import Clock

log = logging.getLogger("rota.store")

FIRST_RANK = -(2**63)
COMPLAIN_S = 60.0
Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A 64-bit integer, which both databases take as a parameter. Any process may send a hint, so numbers are checked."""
Id = Annotated[str, msgspec.Meta(max_length=64)]


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """These lanes have executions to claim; for each lane, the lowest new rank."""

    lanes: dict[Number, Number]
    is_look: bool = False
    """Whether a supervisor found this in its periodic check."""

    @classmethod
    def of(cls, places: Iterable[tuple[int, int]]) -> Ready:
        """From pairs of lane and rank."""
        lowest: dict[int, int] = {}
        for lane, rank in places:
            lowest[lane] = min(rank, lowest.get(lane, rank))
        return cls(lowest)


class Due(msgspec.Struct, frozen=True, tag="due"):
    """An execution is scheduled for this instant."""

    at: Number


class CancelAsked(msgspec.Struct, frozen=True, tag="cancel"):
    """This worker runs an execution that is to be cancelled."""

    worker: Number


class EndWanted(msgspec.Struct, frozen=True, tag="wanted"):
    """A process waits for the end of these executions. On PostgreSQL, only such ends are sent."""

    ids: tuple[Id, ...]


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """These executions have ended."""

    ids: tuple[Id, ...]
    runs: dict[Id, str] = {}
    """Runs that have ended and are not sub-runs, with their statuses. For the process whose transaction ended them, not
    for others."""


Hint = Ready | Due | CancelAsked | EndWanted | Ended
_decode = msgspec.json.Decoder(list[Hint]).decode


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


class HintDecoder:
    """Decodes payloads, which any local process or any role of the database may have sent.

    A payload that is not a list of hints is ignored and counted. The count is logged at most once a minute.
    """

    def __init__(self, clock: Clock, source: str) -> None:
        self.ignored = 0
        self._clock = clock
        self._source = source
        self._complain_at = 0.0

    def decode(self, data: bytes) -> list[Hint]:
        try:
            return _decode(data)
        except Exception as error:  # Also RecursionError and UnicodeDecodeError, which are no MsgspecError.
            self.ignored += 1
            if self._clock.monotonic() >= self._complain_at:
                self._complain_at = self._clock.monotonic() + COMPLAIN_S
                words = "another program sends malformed hints through %s: %d ignored so far (%s)"
                log.warning(words, self._source, self.ignored, type(error).__name__)
            return []


def merged(hints: Sequence[Hint]) -> list[Hint]:
    """The same hints, combined into as few as possible."""
    if len(hints) < 2:
        return list(hints)
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
            case EndWanted():
                wanted.extend(hint.ids)
            case Ended():
                ended.extend(hint.ids)
    result: list[Hint] = [CancelAsked(worker) for worker in sorted(cancels)]
    if lanes:
        result.append(Ready(lanes))
    if due is not None:
        result.append(Due(due))
    if wanted:
        result.append(EndWanted(tuple(wanted)))
    if ended:
        result.append(Ended(tuple(ended)))
    return result
