"""What follows the end of an execution: whoever waits for it is told, and schedules that wait for it go on."""

from __future__ import annotations

from collections.abc import Sequence

from rota.store.hints import Due, Ended
from rota.store.port import Tx

FOLLOWERS_AGE_S = 1.0
"""How old the news may be that no schedule waits for anything. Who is overlooked meanwhile is found by `catch_up`."""
MOST = 500


def ended(tx: Tx, ids: Sequence[str]) -> None:
    """To be called wherever executions end."""
    tx.tell(Ended(tuple(ids)))
    if tx.recent("has_followers", FOLLOWERS_AGE_S)[0]:
        _wake(tx, ids)


def catch_up(tx: Tx) -> int:
    """Wakes schedules whose execution has ended without anybody noticing that they wait for it."""
    ids = [row[0] for row in tx.rows("forgotten_followers", most=MOST)]
    if ids:
        _wake(tx, ids)
    return len(ids)


def _wake(tx: Tx, ids: Sequence[str]) -> None:
    woken = tx.rows("wake_followers", ids=list(ids))
    if woken:
        tx.tell(Due(min(row[0] for row in woken)))
