"""Jobs that fail, have new dead letters, are paused, or run longer than usual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from rota.domain.findings import schedules
from rota.domain.findings.facts import MINUTES, BrokenVersion, ErrorCount, Facts, JobPause, Minutes, Running
from rota.domain.findings.finding import (
    Action,
    Finding,
    Kind,
    Series,
    Severity,
    Subject,
    Unit,
    by,
    do,
    length,
    number,
    open_page,
    percent,
)
from rota.domain.instant import MICROSECONDS

RECENT = 15
"""Minutes over which a share of failures is measured."""
LEAST_FAILED = 3
LEAST_SHARE, UNKNOWN_SHARE = 0.05, 0.2
"""A smaller share of failures is not a finding. The second number applies if the usual share is not known."""
TIMES_USUAL = 3.0
QUIET = 10
"""This many minutes without a failure end a series of failures."""
MINUTE = 60 * MICROSECONDS
LEAST_RUNS, LONGER, LEAST_LONG = 5, 1.5, 60 * MICROSECONDS
"""An execution runs long if it takes this many times the median, and longer than all of the last ones."""
NO_MINUTES = Minutes([0] * MINUTES, [0] * MINUTES, [0] * MINUTES)


_NO_LETTERS = "Executions of this job have failed for good, and no dead letter of them is left."


def failing(facts: Facts) -> Iterator[Finding]:
    """Jobs that fail more than usual, and jobs that have not succeeded since their version in force first failed.

    The second stay a finding without new failures, as when the job is paused.
    """
    for app, job in sorted({*facts.minutes, *facts.broken}):
        share = _unusual_share(facts, app, job)
        if share is not None or (app, job) in facts.broken:
            yield _failing(facts, app, job, share)


def _failing(facts: Facts, app: str, job: str, share: float | None) -> Finding:
    errors, pause = _errors(facts, app, job), _pause_of(facts, app, job)
    minutes, broken = facts.minutes.get((app, job), NO_MINUTES), facts.broken.get((app, job))
    failed, usual = sum(minutes.failed[-RECENT:]), _usual_share(facts, app, job)
    failures = _failures(errors, broken, failed)
    if share is not None:
        words = f"{percent(share)} of the last {RECENT} minutes"
        words += f", usually {percent(usual)}" if usual is not None else ""
    else:
        words = "no execution has succeeded since the first failure"
    return Finding(
        kind=Kind.FAILING,
        severity=Severity.CRITICAL,
        subject=_job(app, job),
        text=f"{job} fails: {words}",
        evidence=failures if pause is None else f"the job is paused; {failures}",
        since=_failing_since(facts, app, job, errors),
        measure=None if share is None else round(share, 4),
        usual=None if usual is None else round(usual, 4),
        unit=None if share is None else Unit.SHARE,
        affected=max(sum(one.new for one in errors) or failed, broken.failed if broken else 0),
        series=Series("failed", _start(facts.now, minutes.failed), 60, list(minutes.failed)),
        actions=[*_letters(job, errors), *_remedies(facts, app, job, pause)],
        advice=None if pause is None else _before_resuming(facts, app, job),
        means=None if errors else _NO_LETTERS,
    )


def _unusual_share(facts: Facts, app: str, job: str) -> float | None:
    """The share of executions that failed lately; None if that is not more than usual, or too few have failed."""
    minutes, usual = facts.minutes.get((app, job)), _usual_share(facts, app, job)
    share = None if minutes is None else _failing_share(minutes)
    least = UNKNOWN_SHARE if usual is None else max(LEAST_SHARE, TIMES_USUAL * usual)
    return None if share is None or share < least else share


def _usual_share(facts: Facts, app: str, job: str) -> float | None:
    known = facts.usual.get((app, job))
    return None if known is None else known.failed_share


def _failing_share(minutes: Minutes) -> float | None:
    """None if too few have failed."""
    failed, success = sum(minutes.failed[-RECENT:]), sum(minutes.success[-RECENT:])
    return failed / (failed + success) if failed >= LEAST_FAILED else None


def _failing_since(facts: Facts, app: str, job: str, errors: Sequence[ErrorCount]) -> int:
    """When the first execution failed, if failures came with a version; else when the current series of them began."""
    broken = facts.broken.get((app, job))
    if errors and (app, job) in facts.ways_back:
        return errors[0].first_at if broken is None else min(errors[0].first_at, broken.first_at)
    if broken is not None:
        return broken.first_at
    return _series_since(facts.minutes[app, job], errors, facts.now)


def _series_since(minutes: Minutes, errors: Sequence[ErrorCount], now: int) -> int:
    """When the current series of failures began; if before the known minutes, when the first dead letter came."""
    begin = quiet = 0
    for place, failed in enumerate(reversed(minutes.failed)):
        quiet = 0 if failed else quiet + 1
        if quiet >= QUIET:
            break
        begin = place if failed else begin
    if begin >= len(minutes.failed) - 1 and errors:
        return errors[0].first_at
    return _start(now, minutes.failed) + (len(minutes.failed) - 1 - begin) * MINUTE


def dead_letters(facts: Facts) -> Iterator[Finding]:
    """New ones of jobs that do not fail more than usual."""
    reported = {(one.subject.app, one.subject.id) for one in failing(facts)}
    for app, job in sorted({(one.app, one.job) for one in facts.errors if one.new}):
        if (app, job) in reported:
            continue
        errors = [one for one in _errors(facts, app, job) if one.new]
        new = sum(one.new for one in errors)
        yield Finding(
            kind=Kind.DEAD_LETTERS,
            severity=Severity.WARNING,
            subject=_job(app, job),
            text=f"{job} has {number(new, 'new dead letter')}",
            evidence=_failures(errors, None, new),
            since=min(one.first_at for one in errors),
            measure=float(new),
            unit=Unit.COUNT,
            affected=new,
            actions=_letters(job, errors),
        )


def paused(facts: Facts) -> Iterator[Finding]:
    for one in facts.pauses:
        waiting = one.waiting + sum(lane.ready for lane in facts.lanes if (lane.app, lane.job) == (one.app, one.job))
        if waiting:
            yield _paused(facts, one, waiting)


def _paused(facts: Facts, one: JobPause, waiting: int) -> Finding:
    """If a job that fails is resumed, its waiting executions fail, too, so the roll-back is offered first."""
    advice = _before_resuming(facts, one.app, one.job)
    first = "" if advice is None else "; it fails: roll back or deploy a fixed version before resuming"
    back = [] if advice is None else _roll_back(facts, one.app, one.job)
    return Finding(
        kind=Kind.JOB_PAUSED,
        severity=Severity.WARNING,
        subject=_job(one.app, one.job),
        text=f"Job {one.job} is paused{by(one.by, one.note)}",
        evidence=f"{number(waiting, 'execution')} wait, paused for {length(facts.now - one.at)}{first}",
        since=one.at,
        measure=float(waiting),
        unit=Unit.COUNT,
        affected=waiting,
        actions=[*back, _resume("Resume…", one.app, one.job)],
        advice=advice,
    )


def long_running(facts: Facts) -> Iterator[Finding]:
    """Executions that run longer than usual, or for so long that ticks of their schedule did not run.

    The second stay a finding when their schedule is paused, which ends the finding about its ticks.
    """
    named = schedules.named(facts)
    for one in facts.running:
        passed = facts.now - one.started_at
        if passed < LEAST_LONG:
            continue
        if _is_long(one, passed) or (one.left_out and one.id not in named):
            yield _long_running(one, passed)


def _is_long(one: Running, passed: int) -> bool:
    return len(one.took) >= LEAST_RUNS and passed > LONGER * median(one.took) and passed > max(one.took)


def _long_running(one: Running, passed: int) -> Finding:
    usual = round(median(one.took)) if len(one.took) >= LEAST_RUNS else None
    words = "" if usual is None else f", usually {length(usual)}"
    facts = [f"attempt {one.attempt}{'' if one.percent is None else f', {one.percent} % done'}"]
    if usual is not None:
        facts.append(f"the longest of the last {len(one.took)} took {length(max(one.took))}")
    if one.left_out:
        facts.append(f"{number(one.left_out, 'tick')} of schedule {one.schedule} did not run because of it")
    return Finding(
        kind=Kind.LONG_RUNNING,
        severity=Severity.WARNING,
        subject=Subject("execution", one.id, one.job, one.app),
        text=f"{one.job} has run for {length(passed)}{words}",
        evidence="; ".join(facts),
        since=one.started_at + (usual or 0),
        measure=passed / MICROSECONDS,
        usual=None if usual is None else usual / MICROSECONDS,
        unit=Unit.SECONDS,
        affected=1,
        series=None if one.percent is None else Series("progress", one.started_at, 1, [one.percent]),
        actions=[
            open_page("Open", f"/executions/{one.id}", f"rota show {one.id}"),
            do("Cancel…", f"/executions/{one.id}/cancel", f"rota cancel {one.id}", asks=True),
        ],
    )


def _errors(facts: Facts, app: str, job: str) -> list[ErrorCount]:
    """The errors of a job, the one with most new letters first."""
    own = [one for one in facts.errors if (one.app, one.job) == (app, job)]
    return sorted(own, key=lambda one: (-one.new, -one.count, one.fingerprint or ""))


def _failures(errors: Sequence[ErrorCount], broken: BrokenVersion | None, failed: int) -> str:
    if not errors:
        since = "" if broken is None else f"since version {broken.version}, "
        return f"{since}{number(failed if broken is None else broken.failed, 'execution')} failed for good"
    first = errors[0]
    text = f" with {first.text}" if first.text else ""
    since = f"since version {first.first_version}, " if (first.first_version or 1) > 1 else ""
    others = f"; {number(len(errors) - 1, 'other error')}" if len(errors) > 1 else ""
    return f"{since}{first.count:,} failed for good{text}{others}"


def _letters(job: str, errors: Sequence[ErrorCount]) -> list[Action]:
    if not errors:
        return [open_page("Failed ones", f"/executions?status=failed&job={job}", f"rota executions --job {job}")]
    count = sum(one.count for one in errors)
    print_ = errors[0].fingerprint
    link = f"/dead?group={print_}" if print_ and len(errors) == 1 else f"/dead?job={job}"
    return [open_page(number(count, "dead letter"), link, f"rota dead --job {job}")]


def _pause_of(facts: Facts, app: str, job: str) -> JobPause | None:
    return next((one for one in facts.pauses if (one.app, one.job) == (app, job)), None)


def _remedies(facts: Facts, app: str, job: str, pause: JobPause | None) -> list[Action]:
    back = _roll_back(facts, app, job)
    if pause is not None:
        first = back or [open_page("Open job", f"/jobs/{app}/{job}")]
        return [*first, _resume("Resume job…", app, job)]
    return [do("Pause job…", f"/jobs/{job}/pause?app={app}", f"rota jobs pause {job}", asks=True), *back]


def _before_resuming(facts: Facts, app: str, job: str) -> str | None:
    """The advice for a paused job that fails; None if it does not, or if the version with the error is replaced."""
    way, resume = facts.ways_back.get((app, job)), f"then `rota jobs resume {job}`"
    if (app, job) not in facts.broken:
        errors = _errors(facts, app, job)
        is_replaced = way is None and bool(errors) and (errors[0].first_version or 1) > 1
        if is_replaced or _unusual_share(facts, app, job) is None:
            return None
    if way is None:
        return f"mend what makes it fail (`rota dead --job {job}`) or deploy a fixed version, {resume}"
    if way.is_code:
        back = "" if way.deploy is None else f"roll back with `rota deploys use {app} {way.deploy}`, or "
        return f"{back}deploy a fixed version of {job}, {resume}"
    return f"roll back to version {way.before} of {job}, or apply a fixed one, {resume}"


def _roll_back(facts: Facts, app: str, job: str) -> list[Action]:
    """The command for a job of code. The page of the versions has the button for a job as data."""
    way = facts.ways_back.get((app, job))
    if way is None or (way.is_code and way.deploy is None):
        return []
    if way.is_code:
        return [Action(label="Roll back", command=f"rota deploys use {app} {way.deploy}")]
    return [open_page("Roll back…", f"/jobs/{app}/{job}?version={way.version}&against={way.before}")]


def _resume(label: str, app: str, job: str) -> Action:
    return do(label, f"/jobs/{job}/resume?app={app}", f"rota jobs resume {job}", asks=True)


def _job(app: str, job: str) -> Subject:
    return Subject("job", job, job, app)


def _start(now: int, points: Sequence[int]) -> int:
    return now - now % MINUTE - (max(1, len(points)) - 1) * MINUTE


assert RECENT < MINUTES, "the share is measured over minutes that are read"
