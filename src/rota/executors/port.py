"""The port between the engine and the code that runs a job: it takes a claim and returns an Outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Outcome
from rota.executors.attempt_state import AttemptState, Completions
from rota.executors.process.start_backoff import StartBackoff


class Processes:
    """Processes that the executors of a worker share. The worker claims no more jobs than these can take."""

    most: int | None = None
    """How many run at once; None if only the worker's slots bound them."""
    at_hand: int = 0
    """How many idle processes could take a job while no other can be started."""

    def __init__(self, starts: StartBackoff) -> None:
        self.starts = starts

    def give_up(self) -> None:
        """Gives back the attempts that wait for a process."""

    async def close(self) -> None:
        """Ends idle processes in order."""


class Executor(ABC):
    """Runs the attempts of one job: a function, a process, a command, a request, or a kind of a third party.

    Third parties add a kind by an entry point in the group `rota.executors`. Their objects need not inherit from this
    class; they need `rules`, `completions`, `grace_s`, `begins_later`, `run` and `abandon`.
    """

    rules: Rules
    completions: Completions | None = None
    """For `ctx.transaction()` and `ctx.complete()`; None where there is no function."""
    grace_s: float = 0.0
    """`run` and the work have certainly ended this many seconds after a cancel."""
    begins_later: bool = False
    """Whether `run` may have to wait before the work begins, and then calls `attempt.begun()`."""
    missing: str = ""
    """What this machine lacks to run the job; a worker leaves such a job to others."""
    processes: Processes | None = None
    """Where it runs its attempts, if these are processes that it shares with other executors."""
    is_in_thread: bool = False
    """Whether the job's code runs in a thread, and the task only waits for it. Then the task is not cancelled, because
    that would not stop the thread, and it may run the next attempt, because the code cannot have changed it."""

    @abstractmethod
    async def run(self, claim: Claim, attempt: AttemptState) -> Outcome:
        """One attempt, on the event loop. A failure of the work is an Outcome, an exception a defect of the executor.

        To stop an attempt, the worker sets `attempt.is_stopping` and cancels this coroutine. It ends the work, and
        raises CancelledError only when that is done. `attempt.usage` is set before it ends, if there is anything to
        tell.
        """

    def of(self, definition: str) -> Executor | None:
        """The executor of a job as data, where this one stands for all jobs of its kind."""
        return None

    def abandon(self) -> None:  # noqa: B027
        """Ends all attempts at once, without waiting: the lease is lost. Called on the event loop."""
