"""What a busy worker does all the time, in one transaction: report what has ended, and take the next.

One commit instead of two. At full speed most of a commit's cost is that it is one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.requirement import UNBOUNDED, Room
from rota.ops import claim, finish
from rota.ops.claim import Claimed, Mark
from rota.ops.finish import Finished
from rota.store.port import Tx


class Turned(msgspec.Struct, frozen=True):
    """The ids whose report was stale, and what was claimed."""

    stale: list[str]
    claimed: Claimed


def turn(
    tx: Tx,
    reports: Sequence[Finished],
    worker: int,
    namespace: str,
    app: str,
    queues: Sequence[str] | None,
    slots: int,
    marks: Sequence[Mark],
    room: Room = UNBOUNDED,
) -> Turned:
    """`finish`, then `claim`; both or neither."""
    stale = finish.finish(tx, reports)
    return Turned(stale, claim.claim(tx, worker, namespace, app, queues, slots, marks, room))
