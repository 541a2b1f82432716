"""Product against oracle, over one window."""

from __future__ import annotations

import itertools

from rota.domain import cron
from rota.domain.ticks import Gap, Repeat, ticks
from rota.domain.zone import zone
from tests.cron.oracle import Oracle
from tests.cron.windows import Window


def difference(expression: str, window: Window, gap: Gap = Gap.NEXT, overlap: Repeat = Repeat.FIRST) -> str | None:
    """What the two disagree on, in words; None if nothing."""
    wanted = Oracle(expression).instants(window.zone, window.start, window.end, gap.value, overlap.value)
    found = [
        tick.at
        for tick in itertools.takewhile(
            lambda tick: tick.at < window.end,
            ticks(cron.parse(expression), zone(window.zone), window.start - 1, overlap),
        )
        if not (tick.in_gap and gap is Gap.SKIP)
    ]
    if found == wanted:
        return None
    return (
        f"{expression!r} in {window} (gap {gap}, overlap {overlap}): only here {sorted(set(found) - set(wanted))}, "
        f"only in the oracle {sorted(set(wanted) - set(found))}"
    )
