"""The facts that findings are made of: the state of a namespace at one instant. Times are microseconds."""

from __future__ import annotations

import msgspec

from rota.domain.breaker import Circuit
from rota.domain.load import Lane

MINUTES = 60
"""How many minutes of counts and samples are read."""


class Minutes(msgspec.Struct, frozen=True):
    """How many executions ended in each of the last minutes, oldest first; the last minute has just begun."""

    success: list[int]
    failed: list[int]
    created: list[int]


class Usual(msgspec.Struct, frozen=True):
    """How many executions ended in the hours before."""

    success: int
    failed: int

    @property
    def failed_share(self) -> float | None:
        ended = self.success + self.failed
        return self.failed / ended if ended else None


class ErrorCount(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one job with one error."""

    app: str
    job: str
    fingerprint: str | None
    count: int
    new: int
    """How many came in the last hour."""
    first_at: int
    last_at: int
    text: str | None = None
    first_version: int | None = None
    last_version: int | None = None
    version_at: int | None = None
    """When the first version that has the error was registered."""


class WayBack(msgspec.Struct, frozen=True):
    """The version of a job that is in force and has an error, and the last one before the error came."""

    version: int
    before: int
    is_code: bool = False
    deploy: int | None = None
    """For a job of code: the deploy with a version from before the error; None if none is kept."""


class BrokenVersion(msgspec.Struct, frozen=True):
    """The version of a job that is in force, is not its first one, and has not succeeded since it first failed."""

    version: int
    first_at: int
    """When its first execution failed."""
    failed: int
    """How many of the executions that were read have failed."""


class PauseChange(msgspec.Struct, frozen=True, array_like=True):
    """A queue or a job was paused or resumed: an entry of the audit trail."""

    action: str
    subject: str
    at: int


class QueueState(msgspec.Struct, frozen=True):
    """A queue, and its length in the last minutes as far as it was sampled."""

    name: str
    paused_at: int | None = None
    paused_by: str | None = None
    paused_note: str | None = None
    depth: list[int | None] = []


class JobPause(msgspec.Struct, frozen=True, array_like=True):
    """A paused job, and how many executions wait until it is resumed."""

    app: str
    job: str
    at: int
    by: str | None
    note: str | None
    waiting: int


class LeftOut(msgspec.Struct, frozen=True, array_like=True):
    """Ticks of one schedule that started nothing, of one outcome."""

    schedule: int
    app: str
    name: str
    job: str
    outcome: str
    count: int
    lately: int
    """How many of them were decided in the last hour."""
    first_at: int
    last_at: int
    last_outcome: str | None
    last_execution: str | None


class Overdue(msgspec.Struct, frozen=True, array_like=True):
    """A schedule with a due tick that no worker has decided."""

    schedule: int
    app: str
    name: str
    job: str
    next_at: int


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that runs, and how long earlier executions of its job took."""

    id: str
    app: str
    job: str
    started_at: int
    attempt: int
    took: list[int] = []
    percent: int | None = None
    schedule: str | None = None
    """The name of the schedule that started it."""
    left_out: int = 0
    """How many ticks of that schedule did not run because this execution had not ended; also while it is paused."""


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker process that is live, or stopped lately. `queues` is None for all of its app."""

    id: int
    name: str
    app: str
    state: str
    queues: list[str] | None
    jobs: frozenset[str]
    offers: str
    slots: int
    busy: int
    lease_until: int
    started_at: int = 0
    stopped_at: int | None = None
    trouble: dict[str, str] = {}
    beats: str = ""
    """A digit for each of the last heartbeats: by how many periods it was late."""
    held: int = 0
    """How many executions it held when it was lost."""
    cause: str = ""

    def is_live(self, now: int) -> bool:
        return self.stopped_at is None and self.lease_until > now


class RunState(msgspec.Struct, frozen=True, array_like=True):
    """An open run that is paused."""

    id: str
    app: str
    workflow: str
    at: int
    """Since when."""
    by: str | None = None
    note: str | None = None


class Approval(msgspec.Struct, frozen=True, array_like=True):
    """A step that waits for an answer."""

    id: str
    run: str
    app: str
    text: str
    created_at: int
    deadline: int | None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at one instant. Counts of executions are bounded."""

    now: int
    lanes: list[Lane] = []
    rates_from: int = 0
    """The rates of the lanes are measured from this instant on."""
    pause_changes: list[PauseChange] = []
    """Those since `rates_from`, oldest first."""
    queues: list[QueueState] = []
    minutes: dict[tuple[str, str], Minutes] = {}
    """By app and job."""
    usual: dict[tuple[str, str], Usual] = {}
    errors: list[ErrorCount] = []
    ways_back: dict[tuple[str, str], WayBack] = {}
    """By app and job: where an error came with a version, and its newest letter has the version in force."""
    broken: dict[tuple[str, str], BrokenVersion] = {}
    """By app and job."""
    pauses: list[JobPause] = []
    left_out: list[LeftOut] = []
    overdue: list[Overdue] = []
    running: list[Running] = []
    workers: list[Worker] = []
    circuits: list[Circuit] = []
    paused_runs: list[RunState] = []
    approvals: list[Approval] = []
