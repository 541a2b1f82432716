"""Workers that cannot start processes, were lost, or whose heartbeats come late."""

from __future__ import annotations

from collections.abc import Iterator

from rota.domain.findings.facts import Facts, Worker
from rota.domain.findings.finding import Action, Finding, Kind, Severity, Subject, Unit, do, length, number, open_page
from rota.domain.instant import MICROSECONDS
from rota.domain.requirement import STANDS_STILL

LATELY = 15 * 60 * MICROSECONDS
"""A worker that was lost is a finding for this long."""
LEAST_LATE = 2


def trouble_text(trouble: dict[str, str]) -> str:
    """The trouble of a worker in a sentence; empty without any."""
    return "; ".join(
        f"stands still: {why}" if what == STANDS_STILL else f"can start no process for {what}: {why}"
        for what, why in sorted(trouble.items())
    )


def _cannot(trouble: dict[str, str]) -> str:
    if STANDS_STILL in trouble:
        return "stands still"
    return f"can start no process for {', '.join(sorted(trouble))}"


def _why(trouble: dict[str, str]) -> str:
    return "; ".join(why for _, why in sorted(trouble.items()))


def in_trouble(facts: Facts) -> Iterator[Finding]:
    for one in facts.workers:
        if one.trouble and one.is_live(facts.now):
            others = "" if STANDS_STILL in one.trouble else ", and other jobs still start on it"
            yield Finding(
                kind=Kind.WORKER_TROUBLE,
                severity=Severity.CRITICAL,
                subject=_worker(one),
                text=f"Worker {one.name} {_cannot(one.trouble)}",
                evidence=f"{_why(one.trouble)}; it runs {one.busy} of {one.slots} at once{others}",
                affected=max(one.slots, 1),
                actions=[_open(one), _drain(one)],
            )


def lost(facts: Facts) -> Iterator[Finding]:
    for one in facts.workers:
        if one.stopped_at is None and one.lease_until <= facts.now:
            yield _lost(facts, one, one.lease_until, f"its lease ran out, and it holds {number(one.busy, 'execution')}")
        elif one.state == "lost" and one.stopped_at is not None and one.stopped_at > facts.now - LATELY:
            held = f"it held {number(one.held, 'execution')}, which other workers get"
            yield _lost(facts, one, one.stopped_at, f"{held}{'; ' if one.cause else ''}{one.cause}")


def _lost(facts: Facts, one: Worker, since: int, evidence: str) -> Finding:
    """Without another worker of its app it is more than a warning."""
    others = any(other.app == one.app and other.is_live(facts.now) for other in facts.workers)
    return Finding(
        kind=Kind.WORKER_LOST,
        severity=Severity.WARNING if others else Severity.CRITICAL,
        subject=_worker(one),
        text=f"Worker {one.name} was lost {length(facts.now - since)} ago",
        evidence=evidence,
        since=since,
        affected=max(one.held, one.busy),
        actions=[_open(one)],
    )


def late(facts: Facts) -> Iterator[Finding]:
    for one in facts.workers:
        count = sum(beat > "0" for beat in one.beats)
        if count >= LEAST_LATE and one.is_live(facts.now):
            yield Finding(
                kind=Kind.WORKER_LATE,
                severity=Severity.WARNING,
                subject=_worker(one),
                text=f"Worker {one.name} sends heartbeats late",
                evidence=f"{count} of the last {len(one.beats)} were late: its machine or the database is overloaded",
                measure=float(count),
                usual=0.0,
                unit=Unit.COUNT,
                affected=one.busy,
                actions=[_open(one)],
            )


def _worker(one: Worker) -> Subject:
    return Subject("worker", str(one.id), one.name, one.app)


def _open(one: Worker) -> Action:
    return open_page("Open", f"/workers/{one.id}", "rota workers")


def _drain(one: Worker) -> Action:
    return do("Drain…", f"/workers/{one.id}/drain", f"rota workers drain {one.id}", asks=True)
