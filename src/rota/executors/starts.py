"""Whether processes can be started here: after one that could not, none is tried for a while.

A worker that is short of descriptors, memory or processes is the fastest of all at giving back what it claims, and
would take from the others what they could run. So it rests for a second, then for two and so on, and after each rest
one start shows whether it works again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from rota.clock import SystemClock

FIRST_REST_S = 1.0
LONGEST_REST_S = 30.0
log = logging.getLogger("rota.engine")
_clock = SystemClock()


class Starts:
    """Of one kind of process: those of a pool, or the commands of a worker."""

    def __init__(self, what: str, monotonic: Callable[[], float] = _clock.monotonic) -> None:
        self.what = what
        self._monotonic = monotonic
        self._under_way = 0
        self._rest_s = 0.0
        self._rests_until = 0.0
        self._failures = 0
        self.why = ""
        """Why the last one failed; empty if they can be started."""

    @property
    def room(self) -> int | None:
        """How many may be tried now; None if nothing is known against it."""
        if not self._rest_s:
            return None
        return 0 if self._under_way or self._monotonic() < self._rests_until else 1

    def begin(self) -> Start:
        """One is tried, until its caller says what became of it."""
        self._under_way += 1
        return Start(self, self._failures)

    def _end(self, failures: int, why: str | None) -> None:
        """`why` is empty if a process was started, and None if nothing was learned."""
        self._under_way -= 1
        if why is None or failures != self._failures:
            return  # What was under way when another one failed says nothing new.
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
    """One that is under way. Only the first word counts."""

    __slots__ = ("_failures", "_is_over", "_starts")

    def __init__(self, starts: Starts, failures: int) -> None:
        """`failures` is how many there had been when it began."""
        self._starts = starts
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
            self._starts._end(self._failures, why)
