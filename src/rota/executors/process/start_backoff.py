"""Back-off after a process could not be started: the worker tries none for a while, then one.

A worker that is short of descriptors, memory or processes would give back what it claims faster than others can run it,
and take it from them. So it pauses for a second, then for two and so on, and after each pause one start shows whether
it works again. No attempt is counted: nothing has run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from zlib import crc32

from rota.clock import SystemClock
from rota.domain.claim import Claim
from rota.domain.outcome import Error, GivenBack
from rota.domain.status import Reason

FIRST_REST_S = 1.0
LONGEST_REST_S = 30.0
DELAY_S = 5.0
"""An execution that was given back starts again after about as long, between half of that and one and a half."""
log = logging.getLogger("rota.engine")
_clock = SystemClock()


class StartBackoff:
    """Of one kind of process: those of a pool, or the commands of a worker."""

    def __init__(self, what: str, monotonic: Callable[[], float] = _clock.monotonic) -> None:
        self.what = what
        self._monotonic = monotonic
        self._under_way = 0
        self._rest_s = 0.0
        self._rests_until = 0.0
        self._failures = 0
        self.why = ""
        """Why the last start failed; empty if processes can be started."""

    @property
    def room(self) -> int | None:
        """How many may be tried now; None if there is no limit."""
        if not self._rest_s:
            return None
        return 0 if self._under_way or self._monotonic() < self._rests_until else 1

    def begin(self) -> Start:
        self._under_way += 1
        return Start(self, self._failures)

    def _end(self, failures: int, why: str | None) -> None:
        """`why` is empty if a process was started, and None if nothing was learned."""
        self._under_way -= 1
        if why is None or failures != self._failures:
            return  # A start that was under way when another one failed says nothing new.
        if not why:
            if self._rest_s:
                log.warning("processes for %s can be started again", self.what)
            self._rest_s, self.why = 0.0, ""
        else:
            self._failures += 1
            self._rest_s = min(LONGEST_REST_S, 2 * self._rest_s or FIRST_REST_S)
            self._rests_until, self.why = self._monotonic() + self._rest_s, why
            words = (self.what, self._rest_s, why.partition("\n")[0])
            log.warning("no process for %s can be started; none is claimed for %g s: %s", *words)


class Start:
    """One start that is under way. Only the first report counts."""

    __slots__ = ("_backoff", "_failures", "_is_over")

    def __init__(self, backoff: StartBackoff, failures: int) -> None:
        """`failures` is how many there had been when it began."""
        self._backoff = backoff
        self._failures = failures
        self._is_over = False

    def worked(self) -> None:
        self._over("")

    def failed(self, why: str) -> None:
        """For a reason of this machine, not of the job."""
        self._over(why or "unknown")

    def dropped(self) -> None:
        """Nothing was learned from it."""
        self._over(None)

    def _over(self, why: str | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._backoff._end(self._failures, why)


def not_started(claim: Claim, error: Error) -> GivenBack:
    """Gives an execution back whose process could not be started.

    The delay lets other executions go first, in case this one is the reason. It differs from one to the next, so that
    they do not come back all at once.
    """
    share = crc32(f"{claim.id} {claim.fence}".encode()) / 2**32
    delay_s = round(DELAY_S * (0.5 + share), 1)
    said = f"{error.message}\n{error.traceback}".rstrip()
    log.warning("job %s goes back to the queue for %g s: %s", claim.job, delay_s, said)
    return GivenBack(Reason.NOT_BEGUN, delay_s, error)


def not_tried(error: Error) -> GivenBack:
    """Gives an execution back at once while this worker pauses after a failure, the `error`: others may run it."""
    return GivenBack(Reason.NOT_BEGUN, error=error)
