"""The rows of an outbox table that cannot become events: which of them are not read again, and how they are logged.

Refused rows stay at the head of the table. Without a memory of them, each read would return them again and never reach
the rows behind. The newest refused rows are remembered by their ids. If there are too many, all rows up to the id of an
older one are skipped. A row with a lower id may be committed later than that, and a user may correct a refused row. So
everything is forgotten after `RETRY_S`, and all rows are read again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from rota.clock import Clock
from rota.ops.events.outbox import LOWEST_ID, Skipped

log = logging.getLogger("rota.engine")

RETRY_S = 600.0
MOST_REMEMBERED = 1000
MOST_LOGGED = 20
"""How many refused rows of a table are logged in `RETRY_S`."""


class OutboxRefusals:
    """The refused rows of one table since all rows were read."""

    def __init__(self, table: str, clock: Clock) -> None:
        self._table, self._clock = table, clock
        self._forget()

    def skipped(self) -> Skipped:
        """The rows that the next read skips."""
        if self._clock.monotonic() >= self._retry_at:
            self._forget()
        return Skipped(self._until, tuple(sorted(self._ids)))

    def add(self, refused: Mapping[int, str]) -> None:
        """Remembers and logs rows that were refused, by id and with the reason."""
        for id, why in refused.items():
            self._log(id, why)
        self._ids.update(refused)
        if len(self._ids) > MOST_REMEMBERED:
            *older, self._until = sorted(self._ids)[: -MOST_REMEMBERED // 2]
            self._ids -= {*older, self._until}

    def _forget(self) -> None:
        self._retry_at = self._clock.monotonic() + RETRY_S
        self._until, self._logged = LOWEST_ID, 0
        self._ids: set[int] = set()

    def _log(self, id: int, why: str) -> None:
        self._logged += 1
        if self._logged <= MOST_LOGGED:
            log.error("row %d of outbox %s cannot become an event, and stays there: %s", id, self._table, why)
        elif self._logged == MOST_LOGGED + 1:
            log.error("more rows of outbox %s cannot become events, and stay there", self._table)
