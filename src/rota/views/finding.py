"""Findings (what needs attention) with their evidence and actions, and the numbers of the overview."""

from __future__ import annotations

from datetime import datetime
from statistics import median

import msgspec

from rota.domain import blocker
from rota.domain.findings import evaluate, jobs
from rota.domain.findings import finding as domain
from rota.domain.findings.finding import Kind, Severity, Unit
from rota.domain.instant import moment
from rota.store import finding_reader
from rota.store.finding_reader import Read
from rota.store.port import View
from rota.store.reader import MOST_WAITING
from rota.views.shape import Shape

MOST_DEAD = 100_000
LEAST_HOURS = 2
"""The usual value of an hour is known if at least this many earlier weeks have it."""


class Subject(Shape, frozen=True):
    """The subject of a finding or a change. `id` is the id in the paths of the API."""

    kind: str
    """A job, queue, schedule, execution, worker, breaker, run or another kind of thing."""
    id: str
    """Its id, as the paths of the API take it."""
    name: str
    app: str | None


class FindingAction(Shape, frozen=True):
    """An action for a finding: `do` is a request (`method`, `path`), `open` a page (`link`), `run` only a command.

    `needs` is the scope of the request. `isConfirmed` says that the user should be asked first.
    """

    label: str
    """The words on a button."""
    kind: str
    """`do` for a request, `open` for a page, `run` for only a command."""
    link: str | None
    """The address of a page of the dashboard."""
    method: str | None
    """The method of the request; null if it is none."""
    path: str | None
    """The path of the request; null if it is none."""
    command: str | None
    """The command that does the same; null if there is none."""
    needs: str
    """The scope that the request needs."""
    is_confirmed: bool
    """Whether a user should be asked before it is sent."""


class FindingSeries(Shape, frozen=True):
    """The shape of it: a value for each interval of `step` seconds, null where nothing is known."""

    metric: str
    """What is counted."""
    from_: datetime = msgspec.field(name="from")
    """When the first interval begins."""
    step: int
    """How many seconds an interval has."""
    points: list[int | None]
    """A value for each interval; null where it is not known."""


class Finding(Shape, frozen=True):
    """One thing that needs attention. `findingId` is the same as long as it lasts.

    `measure` is the value that is wrong and `usual` what it should be, both in `unit`; `affected` counts executions.
    """

    finding_id: str
    """The same as long as the trouble lasts."""
    kind: Kind
    """What is wrong, as a stable code."""
    severity: Severity
    """`critical` if executions fail or cannot run, else `warning`."""
    subject: Subject
    text: str
    """What is wrong, in a sentence."""
    evidence: str
    """The facts behind it, in one line."""
    since: datetime | None
    """Since when it is so; null if that is not known."""
    measure: float | None
    """The value that is wrong, in `unit`."""
    usual: float | None
    """What the value usually is, in `unit`; null if that is not known."""
    unit: Unit | None
    """`share`, `seconds` or `count`."""
    affected: int
    """How many executions it affects."""
    series: FindingSeries | None
    """The shape of it over time; null where there is none."""
    actions: list[FindingAction]
    """What can be done about it, best first."""
    advice: str | None = None
    """What to do, in words, if no action alone helps; null if one does."""
    means: str | None = None
    """What the finding means for the work, in sentences, if its cause is not usual for its kind; null if it is."""


class Numbers(Shape, frozen=True):
    """`endedPerMinute` and `successRate` are of the last 15 minutes, the usual ones of this hour in earlier weeks.

    A rate is null if nothing has ended, and if it is not known. `deadNew` came within the last hour.
    """

    ended_per_minute: float
    """Executions that ended per minute, in the last 15 minutes."""
    usual_ended_per_minute: float | None
    """The same in this hour of earlier weeks; null if that is not known."""
    success_rate: float | None
    """The share of successes among those that succeeded or failed; null if there are none."""
    usual_success_rate: float | None
    """The same in this hour of earlier weeks; null if that is not known."""
    queued: int
    """How many executions are queued."""
    waiting: int
    """How many executions wait for something other than a slot, such as those of a paused job, up to 10,000."""
    waiting_is_capped: bool
    """Whether more may wait than `waiting` says."""
    busy: int
    """How many slots are in use."""
    slots: int
    """How many executions the live workers can run at once."""
    dead: int
    """How many dead letters there are, counted up to 100,000."""
    dead_is_capped: bool
    """Whether there are more dead letters than `dead` says."""
    dead_new: int
    """How many dead letters failed within the last hour."""


class Overview(Shape, frozen=True):
    """The verdict in a sentence, its numbers, and the findings, worst first."""

    at: datetime
    """When it was evaluated."""
    text: str
    """The verdict, in a sentence."""
    numbers: Numbers
    """The numbers behind the verdict."""
    findings: list[Finding]
    """What needs attention, worst first, at most 50."""
    finding_count: int
    """How many findings there are in all."""


def overview(view: View, namespace: str, read: Read) -> Overview:
    found = [shown(one) for one in evaluate(read.facts)]
    return Overview(moment(view.now), verdict(len(found)), _numbers(view, namespace, read), found, len(found))


def findings(view: View, namespace: str) -> list[Finding]:
    """Worst first."""
    return [shown(one) for one in evaluate(finding_reader.read(view, namespace).facts)]


def verdict(count: int) -> str:
    if not count:
        return "Nothing needs attention"
    return "1 thing needs attention" if count == 1 else f"{count} things need attention"


def shown(one: domain.Finding) -> Finding:
    return Finding(
        finding_id=one.id,
        kind=one.kind,
        severity=one.severity,
        subject=Subject(one.subject.kind, one.subject.id, one.subject.name, one.subject.app),
        text=one.text,
        evidence=one.evidence,
        since=None if one.since is None else moment(one.since),
        measure=one.measure,
        usual=one.usual,
        unit=one.unit,
        affected=one.affected,
        series=None if one.series is None else series(one.series),
        actions=[_action(action) for action in one.actions],
        advice=one.advice,
        means=one.means,
    )


def series(of: domain.Series) -> FindingSeries:
    return FindingSeries(of.metric, moment(of.start), of.step_s, list(of.points))


def _action(of: domain.Action) -> FindingAction:
    kind = "do" if of.method else "open" if of.link else "run"
    return FindingAction(of.label, kind, of.link, of.method, of.path, of.command, of.needs.value, of.is_confirmed)


def _numbers(view: View, namespace: str, read: Read) -> Numbers:
    facts, minutes = read.facts, jobs.RECENT
    success, failed = sum(read.ended.success[-minutes:]), sum(read.ended.failed[-minutes:])
    live = [one for one in facts.workers if one.is_live(facts.now)]
    hours = finding_reader.usual_hour(view, namespace)
    ended = [sum(hour) / 60 for hour in hours]
    rates = [good / (good + bad) for good, bad, _ in hours if good + bad]
    dead = int(view.rows("dead_counted", namespace=namespace, most=MOST_DEAD + 1)[0][0])
    return Numbers(
        ended_per_minute=round((success + failed + read.others) / minutes, 2),
        usual_ended_per_minute=round(median(ended), 2) if len(ended) >= LEAST_HOURS else None,
        success_rate=round(success / (success + failed), 4) if success + failed else None,
        usual_success_rate=round(median(rates), 4) if len(rates) >= LEAST_HOURS else None,
        queued=sum(lane.ready for lane in facts.lanes),
        waiting=sum(one.count for one in read.waits if one.kind is not blocker.Kind.RUN),
        waiting_is_capped=sum(one.count for one in read.waits) >= MOST_WAITING,
        busy=sum(one.busy for one in live),
        slots=sum(one.slots for one in live),
        dead=min(dead, MOST_DEAD),
        dead_is_capped=dead > MOST_DEAD,
        dead_new=sum(one.new for one in facts.errors),
    )
