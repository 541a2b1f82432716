"""Back-off after a process could not be started: the worker starts none for a while, then tries one.

A worker that is short of descriptors, memory or processes would claim and give back executions faster than other
workers can run them. So it pauses for a second, then for two and so on, and after each pause tries one start. No
attempt is counted: nothing has run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from zlib import crc32

from rota.clock import MACHINE
from rota.domain.claim import Claim
from rota.domain.outcome import Error, GivenBack
from rota.domain.status import Reason

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
DELAY_S = 5.0
"""An execution that was given back becomes ready again after half to one and a half of this."""
log = logging.getLogger("rota.engine")


class StartBackoff:
    """The back-off of one kind of process: those of a pool, or the commands of a worker."""

    def __init__(self, what: str, monotonic: Callable[[], float] = MACHINE.monotonic) -> None:
        self.what = what
        self._monotonic = monotonic
        self._pause_s = 0.0
        self._paused_until = 0.0
        self.why = ""
        """Why the last start failed; empty if processes can be started."""

    @property
    def room(self) -> int | None:
        """How many starts may be tried now; None if there is no limit."""
        return int(self._monotonic() >= self._paused_until) if self.why else None

    def begin(self) -> None:
        """Call this before a start. After a pause it is the one try, and the next pause is twice as long."""
        if self.room == 1:
            self._pause(2 * self._pause_s)

    def worked(self) -> None:
        if self.why:
            log.warning("processes for %s can be started again", self.what)
            self.why = ""

    def failed(self, why: str) -> None:
        """A start failed because of this machine, not of the job. Starts that fail together cause one pause."""
        if not self.why:
            self._pause(FIRST_PAUSE_S)
            reason = why.partition("\n")[0]
            log.warning("no process for %s can be started; trying one in %g s: %s", self.what, FIRST_PAUSE_S, reason)
        self.why = why or "unknown"

    def _pause(self, pause_s: float) -> None:
        self._pause_s = min(LONGEST_PAUSE_S, pause_s)
        self._paused_until = self._monotonic() + self._pause_s


def not_started(claim: Claim, error: Error) -> GivenBack:
    """Gives an execution back whose process could not be started.

    The delay lets other executions go first, in case this one is the reason. It differs from one to the next, so that
    they do not come back all at once.
    """
    share = crc32(f"{claim.id} {claim.fence}".encode()) / 2**32
    delay_s = round(DELAY_S * (0.5 + share), 1)
    said = f"{error.message}\n{error.traceback}".rstrip()
    log.warning("job %s returns to the queue for %g s: %s", claim.job, delay_s, said)
    return GivenBack(Reason.NOT_BEGUN, delay_s, error)
