"""Notes of attempts while they run: lines of their logs, and their state (progress and checkpoint)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.note import Piece, State
from rota.store.port import Tx, View


def write(tx: Tx, pieces: Sequence[Piece], states: Sequence[State], worker: int | None = None) -> list[str]:
    """Writes log lines and states. Returns the ids whose state is stale, because that attempt no longer runs.

    Idempotent: each piece of a log is stored under the fence of its attempt and its line numbers. With `worker`, notes
    on attempts of other workers are ignored, and their states are stale.
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
    """The data that earlier attempts left for an execution: the checkpoint as JSON, and its degree of suspicion."""

    id: str
    checkpoint: str | None
    suspicion: int


def kept(view: View, ids: Sequence[str]) -> dict[str, Kept]:
    """The kept data by execution; executions without any are missing."""
    return {row.id: row for row in view.records("kept", Kept, ids=list(ids))} if ids else {}


def _merged(states: Sequence[State]) -> list[State]:
    """One state for each attempt, with the newest value of each field."""
    merged: dict[tuple[str, int], State] = {}
    for state in states:
        before = merged.setdefault((state.id, state.fence), state)
        told = {name: value for name, value in msgspec.structs.asdict(state).items() if value is not None}
        merged[state.id, state.fence] = msgspec.structs.replace(before, **told)
    return list(merged.values())
