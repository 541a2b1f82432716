"""A finding: one thing that needs attention, with its evidence and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from rota.domain import duration
from rota.domain.access import Scope
from rota.domain.instant import MICROSECONDS

API = "/api/v1"


class Kind(StrEnum):
    """The kinds of findings, as stable codes."""

    FAILING = "failing"
    NO_WORKER = "no_worker"
    BREAKER_OPEN = "breaker_open"
    WORKER_TROUBLE = "worker_trouble"
    WORKER_LOST = "worker_lost"
    QUEUE_GROWING = "queue_growing"
    TICKS_OVERLAP = "ticks_overlap"
    TICKS_MISSED = "ticks_missed"
    SCHEDULE_OVERDUE = "schedule_overdue"
    DEAD_LETTERS = "dead_letters"
    QUEUE_PAUSED = "queue_paused"
    JOB_PAUSED = "job_paused"
    RUN_PAUSED = "run_paused"
    APPROVAL_WAITING = "approval_waiting"
    APPROVAL_OVERDUE = "approval_overdue"
    LONG_RUNNING = "long_running"
    WORKER_LATE = "worker_late"


class Severity(StrEnum):
    """`critical`: executions fail or cannot run. `warning`: everything else."""

    CRITICAL = "critical"
    WARNING = "warning"


class Unit(StrEnum):
    """Of `measure` and `usual`."""

    SHARE = "share"
    SECONDS = "seconds"
    COUNT = "count"


_STANDS_STILL = {Kind.QUEUE_PAUSED, Kind.JOB_PAUSED, Kind.RUN_PAUSED, Kind.APPROVAL_WAITING, Kind.APPROVAL_OVERDUE}
_LATE = {Kind.TICKS_OVERLAP, Kind.LONG_RUNNING, Kind.WORKER_LATE, Kind.DEAD_LETTERS}


class Subject(msgspec.Struct, frozen=True):
    """The subject of a finding: a job, queue, schedule, execution, worker, breaker, run or approval."""

    kind: str
    id: str
    name: str
    app: str | None = None


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Something to do: a request of the API, or a page to open; and the command for the same."""

    label: str
    link: str | None = None
    """The address of a page of the dashboard."""
    method: str | None = None
    path: str | None = None
    command: str | None = None
    needs: Scope = Scope.READ
    is_confirmed: bool = False
    """Whether the user should be asked first."""


class Series(msgspec.Struct, frozen=True):
    """One value for each interval of `step_s`, from `start` on; None where nothing is known."""

    metric: str
    start: int
    step_s: int
    points: list[int | None]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`affected` counts executions. `measure` is the value that is wrong, `usual` what it should be."""

    kind: Kind
    severity: Severity
    subject: Subject
    text: str
    evidence: str
    since: int | None = None
    measure: float | None = None
    usual: float | None = None
    unit: Unit | None = None
    affected: int = 0
    series: Series | None = None
    actions: list[Action] = []
    advice: str | None = None
    """What to do, in words, where one action alone would not help."""
    means: str | None = None
    """What the finding means for the work, in sentences, where the words for its kind would not be true."""
    aspect: str = ""
    """Tells apart two findings of one kind about one subject."""

    @property
    def id(self) -> str:
        """The same as long as the finding lasts."""
        about = self.subject
        parts = (self.kind, about.kind, f"{about.app}/{about.id}" if about.app else about.id, self.aspect)
        return ":".join(part for part in parts if part)

    @property
    def tier(self) -> int:
        return 1 if self.kind in _STANDS_STILL else 2 if self.kind in _LATE else 0


def ranked(found: Iterable[Finding], now: int) -> list[Finding]:
    """By tier (fails or cannot run, stopped by a person, late), then by executions and age."""

    def key(one: Finding) -> tuple[int, float, str]:
        age_s = 0.0 if one.since is None else max(0, now - one.since) / MICROSECONDS
        return one.tier, -max(1, one.affected) * (60 + age_s), one.id

    return sorted(found, key=key)


def do(label: str, path: str, command: str, *, asks: bool = False) -> Action:
    """A change that an operator may make."""
    path = API + path
    return Action(label=label, method="POST", path=path, command=command, needs=Scope.OPERATE, is_confirmed=asks)


def open_page(label: str, link: str, command: str | None = None) -> Action:
    return Action(label=label, link=link, command=command)


def length(microseconds: float) -> str:
    return duration.words(max(0, microseconds) / MICROSECONDS)


def number(count: int, noun: str) -> str:
    """`1 execution`, `2 executions`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def percent(share: float) -> str:
    """With a decimal below 10 %."""
    value = 100 * share
    return f"{value:.1f} %" if 0 < value < 10 else f"{value:.0f} %"


def by(actor: str | None, note: str | None) -> str:
    """The end of a sentence about a pause."""
    return (f" by {actor}" if actor else "") + (f": “{note}”" if note else "")
