"""The chores of events, which any supervisor does: one step of work at a time."""

from __future__ import annotations

from rota.ops.events.deliver import deliver_open
from rota.ops.events.unsure import settle_waits
from rota.store.port import Tx


def work_on_events(tx: Tx) -> bool:
    """Delivers a chunk of one event, or settles some waits. False if neither was needed.

    Never both: each may end executions, and a transaction calls `after_end` only once.
    """
    return deliver_open(tx) is not None or settle_waits(tx) > 0
