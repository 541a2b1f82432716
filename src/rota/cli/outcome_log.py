"""The worker's log of ended attempts: failures, at most `MOST_PER_SECOND`; with --verbose every attempt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from rota.cli.text import clipped, harmless, short_id
from rota.clock import Clock
from rota.domain import duration, job, lifecycle, overrides
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import Back, Final, Later, Rules
from rota.domain.outcome import Cancelled, Expired, Failed, GivenBack, Lost, Snoozed, Succeeded, TimedOut
from rota.executors import data_jobs
from rota.executors.port import Executor
from rota.ops.finish import Finished

log = logging.getLogger("rota.jobs")

MOST_PER_SECOND = 20
MOST_ERROR = 500
MOST_RESULT = 120
_WORDS = {Cancelled: "cancelled", GivenBack: "given back", Snoozed: "snoozed", Expired: "skipped"}


class OutcomeLog:
    """`settled` is called on the event loop with the reports that the store has written."""

    def __init__(self, clock: Clock, targets: Mapping[str, Executor], *, verbose: bool = False) -> None:
        self._clock = clock
        self._targets = targets
        self._verbose = verbose
        self._failures = 0
        """In this second."""

    def settled(self, reports: Sequence[Finished]) -> None:
        for report in reports:
            if isinstance(report.outcome, Failed | TimedOut | Lost):
                self._log_failure(report, report.outcome)
            elif self._verbose:
                log.info("%s", _line(report))

    def _log_failure(self, report: Finished, outcome: Failed | TimedOut | Lost) -> None:
        if self._failures == 0:
            asyncio.get_running_loop().call_later(1.0, self._begin_second)
        self._failures += 1
        if self._verbose or self._failures <= MOST_PER_SECOND:
            level, line = _failure_line(report, outcome, self._rules(report), self._clock.now())
            log.log(level, "%s", line)

    def _begin_second(self) -> None:
        left_out, self._failures = self._failures - MOST_PER_SECOND, 0
        if left_out > 0 and not self._verbose:
            log.warning("%d more attempts failed within a second: `rota executions` lists them", left_out)

    def _rules(self, report: Finished) -> Rules:
        """The rules in the code of this worker; the store applies those of the deploy in force."""
        target = self._targets.get(report.job)
        own = Rules() if target is None else target.rules
        if report.claim is not None and report.claim.definition is not None:
            own = data_jobs.rules(job.decode(report.claim.definition))
        return own if report.claim is None else overrides.applied(own, report.claim.overrides)


def _line(report: Finished) -> str:
    if isinstance(report.outcome, Succeeded):
        result = report.outcome.result
        shown = "" if result == "null" else f" {harmless(clipped(result, MOST_RESULT))}"
        return f"{_named(report)} succeeded{shown}"
    return f"{_named(report)} {_WORDS.get(type(report.outcome), 'ended')}"


def _named(report: Finished) -> str:
    """`publish 01a1… (step publish[3] of batch …9f2f2daa)`."""
    name, step = f"{report.job} {report.id}", report.step
    if step is None:
        return name
    item = "" if step.index is None else f"[{step.index}]"
    return f"{name} (step {step.step}{item} of {step.workflow} {short_id(step.id)})"


def _failure_line(report: Finished, outcome: Failed | TimedOut | Lost, rules: Rules, now: int) -> tuple[int, str]:
    """The log level and the line for one failed attempt."""
    error = clipped(f"{outcome.error.type}: {outcome.error.message}", MOST_ERROR)
    claim, attempt, after, level = report.claim, "", "", logging.WARNING
    if claim is not None:
        most = rules.retry.attempts
        attempt = f", attempt {claim.attempts + 1}" + (f" of {most}" if most > 1 else "")
        move = lifecycle.decide(claim.held_by(0), outcome, rules, now, report.jitter)
        match move:
            case Later(run_at=run_at):
                after = f"; retry in {duration.words((run_at - now) / MICROSECONDS)}"
            case Back():
                after = "; starts again"
            case Final(reason=reason):
                after, level = f"; given up ({reason})", logging.ERROR
    return level, harmless(f"{_named(report)} failed{attempt}: {error}{after}")
