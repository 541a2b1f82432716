"""What a chaos run was asked to do and what it has shown, as values and as a table for people."""

from __future__ import annotations

import msgspec

from tests.chaos.measures import Rate, Spread

DEFINITIONS = """\
success rate: of the executions that may succeed, those that did. Left out are jobs that are meant to fail (poison, bad
content, too long, doomed) or to be cancelled, and, counted apart, executions that we killed three times ourselves when
they could be blamed alone.
availability: of the seconds of the run, those in which an enqueue was accepted and an attempt started. The second
figure leaves out the time from each kill of all processes at once until the next enqueue and start."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    database: str = "sqlite"
    minutes: float = 1.0
    kills: int = 0
    """Too few are a failure."""
    seed: int = 0
    lease_s: float = 10.0
    supervisors: int = 3
    children: int = 2
    enqueuers: int = 3
    pace_s: float = 0.4
    """How long an enqueuer waits between two calls, on average."""
    blows_per_s: float = 2.8
    cheap: float = 1.0
    """How many of the blows hit what is cheap to start again."""
    even: float = 1.0
    """Less than one lets rare jobs come more often."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has shown. `problems` must be empty."""

    database: str
    seed: int
    lease_s: float
    storm_s: float
    rest_s: float
    kills: int
    kills_by_kind: dict[str, int]
    others_by_kind: dict[str, int]
    grandchildren: int
    executions: int
    refused: int
    ends: dict[str, dict[str, int]]
    attempts: int
    lost: int
    ticks: dict[str, int]
    effects: int
    charged: int
    charged_already: int
    stale_refused: int
    violations: dict[str, int]
    success: Rate
    killed_by_us: int
    availability: Rate
    availability_apart: Rate
    recovery: Spread
    restart: Spread
    notice: Spread
    told: Spread
    told_since_asked: Spread
    overshoot: Spread
    problems: list[str]


def table(report: Report) -> str:
    rows: list[tuple[str, object]] = [
        ("run", f"{report.database}, seed {report.seed}, lease {report.lease_s:g} s"),
        ("kills", f"{report.kills} in {report.storm_s:g} s, then {report.rest_s:g} s to come to rest"),
        *((f"  {kind}", count) for kind, count in report.kills_by_kind.items()),
        ("other faults", sum(report.others_by_kind.values())),
        *((f"  {kind}", count) for kind, count in report.others_by_kind.items()),
        ("grandchildren seen to their end", report.grandchildren),
        ("executions", f"{report.executions}, and {report.refused} calls refused as they should be"),
        *((f"  {job}", _counts(ends)) for job, ends in report.ends.items()),
        ("attempts", f"{report.attempts}, {report.lost} of them lost with a process"),
        ("ticks", _counts(report.ticks)),
        ("effects", report.effects),
        ("  fenced, carried out", report.charged),
        ("  fenced, repeats answered", report.charged_already),
        ("  fenced, stale ones refused", report.stale_refused),
        ("violations", sum(report.violations.values())),
        *((f"  {rule}", count) for rule, count in report.violations.items()),
        ("success rate", report.success),
        ("  killed three times by us", report.killed_by_us),
        ("availability", report.availability),
        ("  apart from blackouts", report.availability_apart),
        ("  blackout until served again", report.recovery),
        ("supervisor killed, work restarted", report.restart),
        ("worker process killed, noticed", report.notice),
        ("cancel accepted, job told", report.told),
        ("  since it was asked for", report.told_since_asked),
        ("timeout overshot by", report.overshoot),
        ("problems", len(report.problems)),
        *((f"  {number}", problem) for number, problem in enumerate(report.problems, start=1)),
    ]
    return "\n".join(f"{name:36} {value}" for name, value in rows) + f"\n\n{DEFINITIONS}"


def _counts(numbers: dict[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in numbers.items())
