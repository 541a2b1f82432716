"""What a running function may ask about its own attempt."""

from __future__ import annotations

import threading

from rota.domain.claim import Claim


class Context:
    """Given to a job's function that has a parameter annotated `rota.Context`."""

    __slots__ = ("_asked", "_claim", "_waiter", "deadline", "saw_stop")

    def __init__(self, claim: Claim, deadline: int | None) -> None:
        self._claim = claim
        self._asked = False
        self._waiter: threading.Event | None = None
        self.deadline = deadline
        """When this attempt times out (microseconds since 1970 UTC), if ever."""
        self.saw_stop = False
        """Whether the body has been told, by `cancelled` or `wait_cancelled`, that it should stop."""

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
        """Whether the attempt was asked to stop: by a cancel, a timeout or a shutdown. Sync jobs should look.

        A job that has seen this and returns counts as stopped, not as a success.
        """
        self.saw_stop = self.saw_stop or self._asked
        return self._asked

    def wait_cancelled(self, timeout_s: float) -> bool:
        """Sleeps up to `timeout_s`, less if asked to stop; returns whether it was. For sync jobs."""
        self._waiter = self._waiter or threading.Event()
        if not self._asked:
            # Asked between these two lines, the other thread finds the waiter and sets it.
            self._waiter.wait(timeout_s)
        return self.cancelled

    def _ask_to_stop(self) -> None:
        self._asked = True
        if self._waiter is not None:
            self._waiter.set()
