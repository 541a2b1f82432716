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
    """Of a supervisor: how many live processes it has, and how many it may have."""

    live: int
    least: int
    most: int


class WorkerEnd(Shape, frozen=True):
    """How many executions a worker held when it stopped, how many of them run again, and how many have failed."""

    held: int
    returned: int
    failed: int
    cause: str | None


class Worker(Shape, frozen=True):
    """`queues` is null if it serves all of its app. `isLost` says that its lease ran out.

    `heartbeats` has a digit for each of the last 40, which are due every `heartbeatEvery` seconds: by how many periods
    it came late. `memoryBytes` is what its process had in use at the last one. `troubleText` is its trouble in a
    sentence. `ended` says what became of its work when it stopped.
    """

    worker_id: str
    name: str
    app: str
    state: str
    is_lost: bool
    slots: int
    busy: int
    queues: list[str] | None
    jobs: list[str]
    offers: dict[str, Any]
    trouble: Any
    trouble_text: str | None
    supervisor: str | None
    processes: Processes | None
    host: str
    pid: int
    version: str
    deploy: int | None
    started_at: datetime
    last_heartbeat: datetime
    lease_until: datetime
    stopped_at: datetime | None
    memory_bytes: int | None
    heartbeats: str
    heartbeat_every: timedelta
    ended: WorkerEnd | None


class WorkerChanged(Worker, frozen=True):
    """A worker after an action. `changed` is false if it was so before."""

    changed: bool


def workers(view: View, namespace: str, stopped_since: int = NEVER) -> list[Worker]:
    """Those that have not stopped, and those that stopped at or after `stopped_since`."""
    rows = reader.workers(view, namespace, stopped_since)
    live = Counter(row.supervisor for row in rows if row.stopped_at is None and row.lease_until > view.now)
    return [_worker(row, live, view.now) for row in rows]


def _worker(row: WorkerRow, live: Counter[str], now: int) -> Worker:
    return shaped(
        Worker,
        row,
        worker_id=str(row.id),
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
        ended=None if row.ended is None else _ended(row.ended),
    )


def _trouble(stored: str | None) -> dict[str, str]:
    found = decoded(stored)
    return {str(what): str(why) for what, why in found.items()} if isinstance(found, dict) else {}


def _ended(stored: str) -> WorkerEnd:
    end = msgspec.json.decode(stored, type=fleet.WorkerEnd)
    return WorkerEnd(end.held, end.returned, end.failed, end.cause or None)
