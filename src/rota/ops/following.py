"""What follows the end of an execution: whoever waits for it is told, and schedules that wait for it go on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.ids import FIRST_ID, LAST_ID
from rota.store.hints import Due, Ended
from rota.store.port import Tx

FOLLOWERS_AGE_S = 1.0
"""How old the news may be that no schedule waits for anything. Who is overlooked meanwhile is found by `catch_up`."""
MOST = 500
MOST_LOOKS = 20_000


class Swept(msgspec.Struct, frozen=True):
    """How many schedules were woken, and behind which execution the next piece begins."""

    woken: int
    after: str


def ended(tx: Tx, ids: Sequence[str]) -> None:
    """To be called wherever executions end."""
    tx.tell(Ended(tuple(ids)))
    if tx.recent("has_followers", FOLLOWERS_AGE_S)[0]:
        _wake(tx, ids)


def catch_up(tx: Tx) -> int:
    """Wakes schedules whose execution has ended without anybody noticing that they wait for it."""
    return sweep(tx, FIRST_ID).woken


def sweep(tx: Tx, after: str, most: int = MOST_LOOKS) -> Swept:
    """A piece of the same, behind the execution `after`: a million that wait keep nobody from writing."""
    end = tx.one("followers_end", after=after, most=most)
    last = LAST_ID if end is None else end[0]
    ids = [row[0] for row in tx.rows("forgotten_followers", after=after, last=last, most=MOST)]
    if ids:
        _wake(tx, ids)
    following = FIRST_ID if end is None else last
    return Swept(len(ids), after if len(ids) == MOST else following)


def _wake(tx: Tx, ids: Sequence[str]) -> None:
    woken = tx.rows("wake_followers", ids=list(ids))
    if woken:
        tx.tell(Due(min(row[0] for row in woken)))
