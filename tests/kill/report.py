"""What a run was asked to do and what it has shown, as values and as a table for people."""

from __future__ import annotations

import msgspec

MOST_CRASH_LOOPS = 0.1
"""The part of the executions that may die of their workers' deaths: bodies are short, so most must succeed."""
MOST_PROBLEMS = 30


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    database: str = "sqlite"
    kills: int = 300
    seed: int = 0
    supervisors: int = 4
    children: int = 2
    enqueuers: int = 2
    lease_s: float = 1.0
    kills_per_s: float = 4.0
    minutes: float = 10.0
    """The killing ends after this time at the latest; too few kills by then are a failure."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has shown. `problems` must be empty."""

    database: str
    seed: int
    kills: int
    kills_by_kind: dict[str, int]
    stops_by_kind: dict[str, int]
    killing_s: float
    rest_s: float
    accepted: int
    ends: dict[str, int]
    lost_attempts: int
    charged: int
    charged_already: int
    stale_refused: int
    unfenced_doubles: int
    longest_to_notice_s: float
    longest_to_restart_s: float
    median_to_restart_s: float
    problems: list[str]


def too_little(report: Report, plan: Plan) -> list[str]:
    """A run that could not have found anything is a failure as well."""
    found = []
    if report.kills < plan.kills:
        found.append(f"{report.kills} kills are fewer than {plan.kills}")
    if not report.unfenced_doubles:
        found.append("no effect without a fence happened twice: the kills hit nothing")
    if not report.lost_attempts:
        found.append("no attempt was lost")
    if report.ends.get("failed: crash_loop", 0) > MOST_CRASH_LOOPS * report.accepted:
        found.append(f"too many crash loops: {report.ends}")
    return found


def shortened(problems: list[str]) -> list[str]:
    shown = [problem if len(problem) <= 400 else f"{problem[:399]}…" for problem in problems[:MOST_PROBLEMS]]
    more = len(problems) - len(shown)
    return [*shown, f"and {more} more"] if more else shown


def table(report: Report) -> str:
    rows: list[tuple[str, object]] = [
        ("seed", report.seed),
        ("kills", f"{report.kills} in {report.killing_s:g} s, then {report.rest_s:g} s to come to rest"),
        *((f"  {kind}", count) for kind, count in report.kills_by_kind.items()),
        *((f"  {kind}", count) for kind, count in report.stops_by_kind.items()),
        ("accepted", report.accepted),
        *((f"  {end}", count) for end, count in report.ends.items()),
        ("attempts lost with their worker", report.lost_attempts),
        ("fenced effects carried out", report.charged),
        ("  repeats answered", report.charged_already),
        ("  stale ones refused", report.stale_refused),
        ("unfenced effects doubled", report.unfenced_doubles),
        ("from kill to the end of the attempt", f"longest {report.longest_to_notice_s:.2f} s"),
        (
            "from kill to the next start",
            f"median {report.median_to_restart_s:.2f} s, longest {report.longest_to_restart_s:.2f} s",
        ),
        ("problems", len(report.problems)),
        *((f"  {number}", problem) for number, problem in enumerate(report.problems, start=1)),
    ]
    return "\n".join(f"{name:36} {value}" for name, value in rows)
