"""What a running function may ask about its own attempt."""

from __future__ import annotations

import threading

from rota.domain.claim import Claim


class Context:
    """Given to a job's function that has a parameter annotated `rota.Context`."""

    __slots__ = ("_claim", "_stop", "deadline")

    def __init__(self, claim: Claim, deadline: int | None) -> None:
        self._claim = claim
        self._stop: threading.Event | None = None
        self.deadline = deadline
        """When this attempt times out (microseconds since 1970 UTC), if ever."""

    @property
    def id(self) -> str:
        """The execution's id: the same in every attempt."""
        return self._claim.id

    @property
    def job(self) -> str:
        return self._claim.job

    @property
    def fence(self) -> int:
        """Counts the starts of this execution. Pass it to outside systems that can refuse an older one."""
        return self._claim.fence

    @property
    def attempt(self) -> int:
        """Which try this is, starting at 1; starts that were given back or crashed are not counted."""
        return self._claim.attempts + 1

    @property
    def scheduled_for(self) -> int:
        """The instant for which the execution was asked (microseconds since 1970 UTC)."""
        return self._claim.run_at

    @property
    def cancelled(self) -> bool:
        """Whether the attempt was asked to stop: by a cancel, a timeout or a shutdown. Sync jobs should look."""
        return self._stop is not None and self._stop.is_set()

    def wait_cancelled(self, timeout_s: float) -> bool:
        """Sleeps up to `timeout_s`, less if asked to stop; returns whether it was. For sync jobs."""
        if self._stop is None:
            self._stop = threading.Event()
        return self._stop.wait(timeout_s)

    def _ask_to_stop(self) -> None:
        if self._stop is None:
            self._stop = threading.Event()
        self._stop.set()
