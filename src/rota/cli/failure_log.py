"""The worker's log of failed attempts: one line for each, at most `MOST_PER_SECOND`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from rota.cli.text import clipped, harmless
from rota.clock import Clock
from rota.domain import duration, lifecycle, overrides
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import Back, Final, Later, Rules
from rota.domain.outcome import Failed, Lost, TimedOut
from rota.executors.port import Executor
from rota.ops.finish import Finished

log = logging.getLogger("rota.jobs")

MOST_PER_SECOND = 20
MOST_ERROR = 500


class FailureLog:
    """`settled` is called on the event loop with the reports that the store has written."""

    def __init__(
        self, clock: Clock, targets: Mapping[str, Executor], most_per_second: int | None = MOST_PER_SECOND
    ) -> None:
        self._clock = clock
        self._targets = targets
        self._most = most_per_second
        self._count = 0
        self._left_out = 0
        self._is_counting = False

    def settled(self, reports: Sequence[Finished]) -> None:
        for report in reports:
            if isinstance(report.outcome, Failed | TimedOut | Lost):
                self._log(report, report.outcome)

    def _log(self, report: Finished, outcome: Failed | TimedOut | Lost) -> None:
        if self._most is not None:
            if not self._is_counting:
                self._is_counting = True
                asyncio.get_running_loop().call_later(1.0, self._begin_second)
            self._count += 1
            if self._count > self._most:
                self._left_out += 1
                return
        level, line = log_line(report, outcome, self._rules(report), self._clock.now())
        log.log(level, "%s", line)

    def _rules(self, report: Finished) -> Rules:
        """As the code of this worker has them; the store goes by the version in force."""
        target = self._targets.get(report.job)
        own = Rules() if target is None else target.rules
        return own if report.claim is None else overrides.applied(own, report.claim.overrides)

    def _begin_second(self) -> None:
        left_out, self._left_out = self._left_out, 0
        self._count, self._is_counting = 0, False
        if left_out:
            log.warning("%d more attempts failed within a second: `rota executions` lists them", left_out)


def log_line(report: Finished, outcome: Failed | TimedOut | Lost, rules: Rules, now: int) -> tuple[int, str]:
    """The log level and the line for one failed attempt."""
    error = clipped(f"{outcome.error.type}: {outcome.error.message}", MOST_ERROR)
    claim, attempt, after, level = report.claim, "", "", logging.WARNING
    if claim is not None:
        most = rules.retry.attempts
        attempt = f", attempt {claim.attempts + 1}" + (f" of {most}" if most > 1 else "")
        move = lifecycle.decide(claim.held_by(0), outcome, rules, now, report.jitter)
        match move:
            case Later(run_at=run_at):
                after = f"; retried in {duration.words((run_at - now) / MICROSECONDS)}"
            case Back():
                after = "; started again"
            case Final(reason=reason):
                after, level = f"; given up ({reason})", logging.ERROR
    return level, harmless(f"{report.id} failed {report.job}{attempt}: {error}{after}")
