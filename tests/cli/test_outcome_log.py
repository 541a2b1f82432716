"""What a worker logs of attempts that failed, without being asked to be verbose."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from rota.cli.outcome_log import MOST_PER_SECOND, OutcomeLog
from rota.clock import ManualClock
from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Cancelled, Failed, Lost, Outcome, Succeeded, TimedOut
from rota.domain.retry import NO_RETRY, Fixed
from rota.executors.port import Executor
from rota.executors.process.command import Command, CommandExecutor
from rota.ops.finish import Finished
from tests.support.waiting import PATIENCE_S

CLAIM = Claim("0197", 1, 1, 1, 0, 0, 0, 0, None, "pay", "{}", None, 0, 0)
RULES = Rules(retry=Fixed(attempts=3, delay=90.0))
BOOM = payload.error("ValueError", "boom\nagain\x1b[2J")


def report(outcome: Outcome, attempts: int = 0, job: str = "pay") -> Finished:
    claim = msgspec.structs.replace(CLAIM, attempts=attempts)
    return Finished("0197", 1, outcome, 0.5, job, claim=claim)


def target(rules: Rules) -> Executor:
    return CommandExecutor(Command(argv=["true"]), rules)


TARGETS = {"pay": target(RULES), "once": target(Rules(retry=NO_RETRY))}


LATE = report(TimedOut(payload.error("Timeout", "late")), job="once")
GONE = report(Lost(payload.error("Crashed", "gone")))


@pytest.mark.parametrize(
    ("finished", "level", "line"),
    [
        (report(Failed(BOOM)), "WARNING", ", attempt 1 of 3: ValueError: boom⏎again\\x1b[2J; retry in 1 m 30 s"),
        (
            report(Failed(BOOM), 2),
            "ERROR",
            ", attempt 3 of 3: ValueError: boom⏎again\\x1b[2J; given up (retries_exhausted)",
        ),
        (LATE, "ERROR", ", attempt 1: Timeout: late; given up (timeout)"),
        (GONE, "WARNING", ", attempt 1 of 3: Crashed: gone; starts again"),
    ],
    ids=["retried", "exhausted", "timed out", "crashed"],
)
async def test_a_failed_attempt_is_one_line(
    caplog: pytest.LogCaptureFixture, finished: Finished, level: str, line: str
) -> None:
    OutcomeLog(ManualClock(), TARGETS).settled([report(Succeeded()), finished, report(Cancelled())])
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (level, f"{finished.job} 0197 failed{line}")
    ]


async def test_a_flood_of_failures_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    failures = OutcomeLog(ManualClock(), TARGETS)
    failures.settled([report(Failed(BOOM))] * 1000)
    assert len(caplog.records) == MOST_PER_SECOND
    async with asyncio.timeout(PATIENCE_S):
        while len(caplog.records) == MOST_PER_SECOND:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # sleep: the second must pass
    last = caplog.records[-1]
    assert (last.levelno, last.getMessage().partition(":")[0]) == (
        logging.WARNING,
        "980 more attempts failed within a second",
    )
    failures.settled([report(Failed(BOOM))])
    assert len(caplog.records) == MOST_PER_SECOND + 2, "the next second is a new one"
