"""Runs that are paused or that nothing will move, and approvals without an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.domain.findings.facts import Approval, Facts, RunState
from rota.domain.findings.finding import Finding, Kind, Severity, Subject, by, do, length, number, open_page
from rota.domain.instant import MICROSECONDS

HOUR = 3600 * MICROSECONDS
LONG = 24 * HOUR
"""An approval that has waited this long is overdue."""
SOON = HOUR
"""An approval whose timeout comes within this time is overdue, too."""


def paused(facts: Facts) -> Iterator[Finding]:
    for one in facts.paused_runs:
        resume = do("Resume…", f"/runs/{one.id}/resume", f"rota run resume {one.id}", asks=True)
        yield Finding(
            kind=Kind.RUN_PAUSED,
            severity=Severity.WARNING,
            subject=_run(one),
            text=f"A run of {one.workflow} is paused{by(one.by, one.note)}",
            evidence=f"no further step starts, paused for {length(facts.now - one.at)}",
            since=one.at,
            affected=1,
            actions=[open_page("Open", f"/runs/{one.id}", f"rota run show {one.id}"), resume],
        )


def unanswered(facts: Facts) -> Iterator[Finding]:
    """One for each approval that is overdue, and one for all others with the same question."""
    by_question: dict[tuple[str, str], list[Approval]] = {}
    for one in facts.approvals:
        is_ending = one.deadline is not None and one.deadline - facts.now < SOON
        if is_ending or facts.now - one.created_at > LONG:
            yield _unanswered(facts, Kind.APPROVAL_OVERDUE, [one])
        else:
            by_question.setdefault((one.app, one.text), []).append(one)
    for several in by_question.values():
        yield _unanswered(facts, Kind.APPROVAL_WAITING, several)


def _unanswered(facts: Facts, kind: Kind, approvals: Sequence[Approval]) -> Finding:
    """About the oldest of these."""
    one, *others = sorted(approvals, key=lambda one: one.created_at)
    ends = ""
    if one.deadline is not None:
        left = one.deadline - facts.now
        ends = "; its time is over" if left <= 0 else f"; its time is over in {length(left)}"
    more = f"; {number(len(others), 'other run')} ask the same" if others else ""
    return Finding(
        kind=kind,
        severity=Severity.WARNING,
        subject=Subject("approval", one.id, one.text or "approval", one.app),
        text=f"No answer to “{one.text}” for {length(facts.now - one.created_at)}",
        evidence=f"the run waits for a person{ends}{more}",
        since=one.created_at,
        affected=len(approvals),
        actions=[
            open_page("Open run", f"/runs/{one.run}", f"rota run show {one.run}"),
            do("Approve…", f"/approvals/{one.id}/approve", f"rota run approve {one.run}", asks=True),
        ],
    )


def _run(one: RunState) -> Subject:
    return Subject("run", one.id, one.workflow, one.app)
