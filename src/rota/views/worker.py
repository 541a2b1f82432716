"""A worker process: what it serves, how busy it is, and whether it is live."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.domain import requirement
from rota.domain.findings.workers import trouble_text
from rota.domain.instant import MICROSECONDS
from rota.ops import fleet
from rota.ops.fleet import BEATS_PER_LEASE
from rota.store import reader
from rota.store.port import View
from rota.store.reader import WorkerRow
from rota.views.shape import Shape, shaped
from rota.views.stored_json import decoded

NEVER = 2**62


class Processes(Shape, frozen=True):
    """The processes of a supervisor: how many are live, and how many it may have."""

    live: int
    """How many processes are live."""
    least: int
    """How many processes it has at least."""
    most: int
    """How many processes it may have at most."""


class WorkerEnd(Shape, frozen=True):
    """How many executions a worker held when it stopped, how many of them run again, and how many have failed."""

    held: int
    """How many executions it held."""
    returned: int
    """How many of them run again."""
    failed: int
    """How many of them have failed."""
    cause: str | None
    """Why it stopped; null if that is not known."""


class Worker(Shape, frozen=True):
    """`queues` is null if it serves all of its app. `isLost` says that its lease ran out."""

    worker_id: str
    """The id of the worker."""
    name: str
    app: str
    state: str
    """`live`, `draining` or `stopped`; `draining` also while the worker has not read yet that it was asked to."""
    is_lost: bool
    """Whether its lease ran out without a stop."""
    slots: int
    """How many executions it runs at once."""
    busy: int
    """How many executions it runs now."""
    queues: list[str] | None
    """The queues that it serves; null for all of its app."""
    jobs: list[str]
    """The jobs that it runs."""
    offers: dict[str, Any]
    """Its pools, tags and resources."""
    trouble: Any
    """The problems of the worker, by subject; null if there are none."""
    trouble_text: str | None
    """The trouble in a sentence, for a stopped worker its last one; null without trouble."""
    supervisor: str | None
    """The name of its supervisor; null if it has none."""
    processes: Processes | None
    """How many processes its supervisor has and may have; null without a supervisor."""
    host: str
    """The name of its machine."""
    pid: int
    """The number of its process on that machine."""
    version: str
    """The version of Rota that it runs."""
    deploy: int | None
    """The number of the deploy that it runs; null without code."""
    started_at: datetime
    """When it started."""
    last_heartbeat: datetime
    """When its last heartbeat was."""
    lease_until: datetime
    """When its lease runs out unless it is renewed."""
    stopped_at: datetime | None
    """When it stopped; null while it runs."""
    memory_bytes: int | None
    """The memory that its process used at the last heartbeat."""
    heartbeats: str
    """A digit for each of the last 40 heartbeats: by how many periods it came late, 9 for more."""
    heartbeat_every: timedelta
    """After how many seconds the next heartbeat is due."""
    ended: WorkerEnd | None
    """The executions that it held when it stopped; null while it runs."""
    drain_asked_by: str | None
    """The actor who asked it to drain; null if it was not asked."""


class WorkerChanged(Worker, frozen=True):
    """A worker after an action. `changed` is false if nothing had to change."""

    changed: bool


def workers(view: View, namespace: str, stopped_since: int = NEVER) -> list[Worker]:
    """Those that have not stopped, and those that stopped at or after `stopped_since`."""
    rows = reader.workers(view, namespace, stopped_since)
    live = Counter(row.supervisor for row in rows if row.stopped_at is None and row.lease_until > view.now)
    return [_worker(row, live, view.now) for row in rows]


def _worker(row: WorkerRow, live: Counter[str], now: int) -> Worker:
    end = None if row.ended is None else msgspec.json.decode(row.ended, type=fleet.WorkerEnd)
    return shaped(
        Worker,
        row,
        worker_id=str(row.id),
        state="draining" if row.state == fleet.TO_DRAIN else row.state,
        is_lost=row.stopped_at is None and row.lease_until <= now,
        slots=row.concurrency,
        busy=row.running,
        queues=decoded(row.queues),
        jobs=decoded(row.jobs),
        offers=msgspec.structs.asdict(requirement.decode_offers(row.offers)),
        trouble=decoded(row.trouble),
        supervisor=row.supervisor or None,
        processes=Processes(live=live[row.supervisor], least=row.least, most=row.most) if row.supervisor else None,
        last_heartbeat=row.heartbeat_at,
        trouble_text=trouble_text(_trouble(row.trouble)) or None,
        memory_bytes=row.memory,
        heartbeats=row.beats,
        heartbeat_every=max(0, row.lease_until - row.heartbeat_at) / BEATS_PER_LEASE / MICROSECONDS,
        ended=None if end is None or row.stopped_at is None else _ended(end),
        drain_asked_by=None if end is None else end.asked_by or None,
    )


def _trouble(stored: str | None) -> dict[str, str]:
    found = decoded(stored)
    return {str(what): str(why) for what, why in found.items()} if isinstance(found, dict) else {}


def _ended(end: fleet.WorkerEnd) -> WorkerEnd:
    return WorkerEnd(end.held, end.returned, end.failed, end.cause or None)
