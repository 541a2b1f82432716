"""What is checked before new executions are placed: the ids' clock and the depth of the queue."""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain import backpressure
from rota.domain.errors import ClockSkew, QueueFull
from rota.domain.instant import MICROSECONDS
from rota.ids import made_at
from rota.ops.submission import Header, Item
from rota.store.port import Tx

MOST_CLOCK_SKEW_S = 24 * 3600.0
DEPTH_AGE_S = 0.2
"""How old the counted depth of a queue may be. Executions that came since then may exceed the limit."""


def check_ids(tx: Tx, items: Sequence[Item]) -> None:
    """An id holds the time of its making, and history is kept by it: a clock that is days off would misplace it."""
    for item in (items[0], items[-1]) if items else ():
        off_s = (made_at(item.id) - tx.now) / MICROSECONDS
        if abs(off_s) > MOST_CLOCK_SKEW_S:
            raise ClockSkew(
                f"this machine's clock is {abs(off_s) / 3600:.0f} hours {'ahead of' if off_s > 0 else 'behind'} the "
                "database's: nothing was accepted. Set it right (NTP), then try again"
            )


def check_depth(tx: Tx, header: Header, arriving: int, max_depth: int | None) -> None:
    """Refuses executions that would exceed the limit of their queue."""
    if max_depth is None:
        return
    where = {"namespace": header.namespace, "queue": header.queue}
    depth = tx.recent("queue_depth", DEPTH_AGE_S, **where, most=max_depth + 1)
    if backpressure.admits(depth[0], arriving, max_depth):
        depth[0] += arriving
        return
    oldest = tx.one("queue_oldest", **where)
    waited_s = (tx.now - oldest[0]) / MICROSECONDS if oldest and oldest[0] else 0.0
    after_s = backpressure.retry_after_s(waited_s)
    raise QueueFull(
        f"queue {header.queue!r} is full ({depth[0]} of {max_depth} queued): nothing was accepted, "
        f"retry after {after_s:g} s",
        after_s,
    )
