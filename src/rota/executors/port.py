"""What the engine knows of whatever runs a job: it takes a claim and returns an Outcome."""

from __future__ import annotations

from typing import Protocol

from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Outcome
from rota.executors.context import Completions, Context


class Target(Protocol):
    """A job as a worker has it."""

    @property
    def rules(self) -> Rules: ...

    @property
    def completions(self) -> Completions | None:
        """How its function may complete in a transaction of its own, if it has one that can."""


class Executor(Target, Protocol):
    """Runs a job somewhere else than in this process: in another one, as a command, on another machine.

    An instance belongs to one job. Third parties add a kind by an entry point in the group `rota.executors`.
    """

    @property
    def grace_s(self) -> float:
        """By so many seconds after it was cancelled, `run` has ended for sure, and what it ran has ended with it."""

    @property
    def begins_later(self) -> bool:
        """Whether `run` may have to wait before the work begins, and then calls `context.begun()`."""

    async def run(self, claim: Claim, context: Context) -> Outcome:
        """One attempt, on the event loop. What the work did wrong is an Outcome; an exception is a defect of ours.

        When it must stop, this is cancelled: it ends the work, and raises the CancelledError only when that is done.
        `context.usage` is set before it ends, if there is anything to tell.
        """

    def abandon(self) -> None:
        """At once, from the event loop: the lease is lost, and whatever runs must not go on."""
