"""Schedules whose ticks overlap, are missed, or are not decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.domain.findings.facts import Facts, LeftOut, Overdue
from rota.domain.findings.finding import Action, Finding, Kind, Severity, Subject, Unit, do, length, number, open_page
from rota.domain.tick_policy import TickOutcome

LEAST_LATELY = 2
"""This many skipped ticks in the last hour are a finding, even if the last tick has fired."""
OVERLAPS = (TickOutcome.OVERLAP, TickOutcome.QUEUED)
_WHY = {
    TickOutcome.OVERLAP: "the execution before had not ended",
    TickOutcome.QUEUED: "waiting for the execution before to end",
    TickOutcome.MISSED: "no worker was there in time",
    TickOutcome.OUTSIDE_WINDOW: "they were too old to be caught up",
    TickOutcome.UNKNOWN_JOB: "its job was not known",
}


def left_out(facts: Facts) -> Iterator[Finding]:
    by_schedule: dict[int, list[LeftOut]] = {}
    for one in facts.left_out:
        if one.outcome in _WHY and is_current(one):
            by_schedule.setdefault(one.schedule, []).append(one)
    for rows in by_schedule.values():
        yield _left_out(facts, rows)


def named(facts: Facts) -> set[str | None]:
    """The executions that findings about ticks that overlap are about."""
    return {one.last_execution for one in facts.left_out if one.outcome in OVERLAPS and is_current(one)}


def is_current(one: LeftOut) -> bool:
    return one.lately >= LEAST_LATELY or one.last_outcome == one.outcome


def _left_out(facts: Facts, rows: Sequence[LeftOut]) -> Finding:
    first = max(rows, key=lambda one: one.last_at)
    count = sum(one.count for one in rows)
    is_overlap = first.outcome in OVERLAPS
    reasons = "; ".join(f"{one.outcome}: {_WHY[TickOutcome(one.outcome)]}" for one in rows)
    running = next((one for one in facts.running if one.id == first.last_execution), None)
    if is_overlap and running is not None:
        reasons += f", it runs for {length(facts.now - running.started_at)}"
    return Finding(
        kind=Kind.TICKS_OVERLAP if is_overlap else Kind.TICKS_MISSED,
        severity=Severity.WARNING,
        subject=_schedule(first),
        text=f"{first.name}: {number(count, 'tick')} did not run",
        evidence=f"{reasons}; the last {length(facts.now - first.last_at)} ago",
        since=min(one.first_at for one in rows),
        measure=float(count),
        unit=Unit.COUNT,
        affected=count,
        actions=_actions(first, is_overlap=is_overlap, is_running=running is not None),
    )


def _actions(one: LeftOut, *, is_overlap: bool, is_running: bool) -> list[Action]:
    found = [open_page("Open schedule", f"/schedules?of={one.name}", f"rota schedules ticks {one.name}")]
    if is_overlap and one.last_execution is not None:
        found.append(
            open_page("Open execution", f"/executions/{one.last_execution}", f"rota show {one.last_execution}")
        )
    if is_overlap and is_running:
        path = f"/executions/{one.last_execution}/cancel"
        found.append(do("Cancel execution…", path, f"rota cancel {one.last_execution}", asks=True))
    if is_overlap:
        command = f"rota schedules pause {one.name} --app {one.app}"
        found.append(do("Pause schedule…", f"/schedules/{one.schedule}/pause", command, asks=True))
    return found


def overdue(facts: Facts) -> Iterator[Finding]:
    for one in facts.overdue:
        yield Finding(
            kind=Kind.SCHEDULE_OVERDUE,
            severity=Severity.WARNING,
            subject=_schedule(one),
            text=f"{one.name}: its tick was due {length(facts.now - one.next_at)} ago",
            evidence="no worker has decided it: is one running?",
            since=one.next_at,
            affected=1,
            actions=[open_page("Open schedule", f"/schedules?of={one.name}", f"rota schedules ticks {one.name}")],
        )


def _schedule(one: LeftOut | Overdue) -> Subject:
    return Subject("schedule", str(one.schedule), one.name, one.app)
