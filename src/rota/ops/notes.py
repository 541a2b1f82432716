"""What attempts tell while they run, written down: lines of their logs, and how they stand."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.note import Piece, State
from rota.store.port import Tx, View


def write(tx: Tx, pieces: Sequence[Piece], states: Sequence[State], worker: int | None = None) -> list[str]:
    """Adds to logs and says how attempts stand. Returns the ids whose state is stale: that attempt runs no more.

    May be repeated with the very same pieces. Each is kept under the fence of its attempt, so one that comes late does
    no harm. With `worker`, notes on attempts of other workers are ignored, and their states are stale.
    """
    if pieces:
        if worker is None:
            tx.run("add_pieces", rows=list(pieces))
        else:
            tx.run("add_own_pieces", rows=list(pieces), worker=worker)
    if not states:
        return []
    return list(dict.fromkeys(row[0] for row in tx.rows("write_states", rows=_merged(states), worker=worker)))


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What is known of an execution that has started before: its checkpoint as JSON, and how suspicious it is."""

    id: str
    checkpoint: str | None
    suspicion: int


def kept(view: View, ids: Sequence[str]) -> dict[str, Kept]:
    """Of those of the executions of which there is anything."""
    return {row.id: row for row in view.records("kept", Kept, ids=list(ids))} if ids else {}


def _merged(states: Sequence[State]) -> list[State]:
    """One state for each attempt, in which what came later counts."""
    merged: dict[tuple[str, int], State] = {}
    for state in states:
        before = merged.get((state.id, state.fence))
        merged[state.id, state.fence] = state if before is None else _over(before, state)
    return list(merged.values())


def _over(before: State, state: State) -> State:
    told = {name: value for name, value in msgspec.structs.asdict(state).items() if value is not None}
    return msgspec.structs.replace(before, **told)
