"""One line in the log for each request, in the form of the other lines.

`logging` takes 9 µs for a line, a tenth of what a small request takes: it finds the caller, makes a record, and writes
each line by itself. These lines are written together, a moment later.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from rota.api.services import Services
from rota.domain.instant import MICROSECONDS, moment

WRITE_EVERY_S = 0.2
MOST_AT_ONCE = 4_000
"""Characters. Several processes may write to one pipe, which keeps writes of up to 4,096 bytes whole."""
log = logging.getLogger("rota.access")


class AccessLog:
    """The lines that are not written yet. They are kept only while `rota.access` is logged at INFO."""

    def __init__(self, services: Services) -> None:
        self._clock = services.clock
        self._lines: list[str] = []
        self._size = 0
        self._second, self._shown_second = -1, ""

    def note(self, words: str) -> None:
        if not log.isEnabledFor(logging.INFO):
            return
        line = f"{self._now()} INFO rota.access: {words}\n"
        if self._size + len(line) > MOST_AT_ONCE:
            self.close()
        if not self._lines:
            asyncio.get_running_loop().call_later(WRITE_EVERY_S, self.close)
        self._lines.append(line)
        self._size += len(line)

    def close(self) -> None:
        """Writes the lines; also when the server stops."""
        lines, self._lines, self._size = self._lines, [], 0
        sys.stderr.write("".join(lines))
        sys.stderr.flush()

    def _now(self) -> str:
        now = self._clock.now()
        second = now // MICROSECONDS
        if second != self._second:
            self._second = second
            self._shown_second = moment(second * MICROSECONDS).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        return f"{self._shown_second},{now % MICROSECONDS // 1000:03d}"
