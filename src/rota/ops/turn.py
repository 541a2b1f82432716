"""What a busy worker does all the time, in one transaction: report what has ended, and take the next.

One commit instead of two. At full speed most of a commit's cost is that it is one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.requirement import UNBOUNDED, Room
from rota.domain.served import Served
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
    served: Served,
    slots: int,
    marks: Sequence[Mark] | None,
    room: Room = UNBOUNDED,
) -> Turned:
    """`finish`, then `claim`; both or neither."""
    stale = finish.finish(tx, reports, worker)
    return Turned(stale, claim.claim(tx, worker, served, slots, marks, room))
