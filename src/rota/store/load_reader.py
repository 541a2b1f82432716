"""Reads the load of each lane and the capacity of the workers; `domain/load.py` decides what follows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rota.domain import breaker, requirement
from rota.domain.breaker import Circuit
from rota.domain.instant import MICROSECONDS
from rota.domain.load import SOON_S, WINDOW_S, Capacity, Lane, Measured
from rota.domain.served import Served
from rota.ids import first_at
from rota.store import reader
from rota.store.port import View

MOST_ARRIVALS = 10_000
MOST_ENDS = 5_000
"""At most this many of the newest rows are read. If they do not cover `WINDOW_S`, the rates are of a shorter time."""
_NEVER_STOPPED = 2**62


class LaneRow(msgspec.Struct, frozen=True, array_like=True):
    """A lane, and its ready executions."""

    id: int
    app: str
    job: str
    queue: str
    requirements: str
    paused: int
    ready: int
    oldest_at: int | None
    runs: str | None


class _Ends(msgspec.Struct):
    """The ended attempts of one lane."""

    count: int = 0
    took: int = 0
    lately: int = 0


def needs_of_ready(view: View, served: Served) -> list[str]:
    """The requirements of ready executions that may start now."""
    found = view.rows("needs_of_ready", jobs=served.jobs, **served.where())
    relying = {namespace for namespace, needs in found if requirement.breakers(needs)}
    circuits = {namespace: open_circuits(view, namespace) for namespace in relying}
    return [needs for namespace, needs in found if may_start(needs, circuits.get(namespace, {}), view.now)]


def measure(view: View, namespace: str) -> Measured:
    """The load of a namespace and its live workers."""
    now, circuits = view.now, open_circuits(view, namespace)
    running = {lane: (count, total) for lane, count, total in view.rows("running_in_lanes")}
    due: dict[int, int] = dict(view.rows("due_in_lanes", until=now + round(SOON_S * MICROSECONDS)))
    arrivals, ends, ends_s = _arrivals(view, now), *_ends(view, now)
    lanes = [
        Lane(
            app=row.app,
            job=row.job,
            queue=row.queue,
            requirements=row.requirements,
            runs=row.runs,
            is_paused=bool(row.paused),
            may_start=not row.paused and may_start(row.requirements, circuits, now),
            ready=row.ready,
            oldest_at=row.oldest_at,
            due_soon=due.get(row.id, 0),
            running=running.get(row.id, (0, 0))[0],
            running_for=max(0, running.get(row.id, (0, 0))[1]),
            arrivals_per_s=arrivals.get(row.id, 0.0),
            ended_per_s=ended.lately / ends_s,
            ended=ended.count,
            took=ended.took,
        )
        for row in view.records("load_of_lanes", LaneRow, namespace=namespace)
        for ended in (ends.get(row.id, _Ends()),)
    ]
    return Measured(at=now, lanes=lanes, workers=_workers(view, namespace, now))


def open_circuits(view: View, namespace: str) -> dict[str, Circuit]:
    """The breakers that are open, by name."""
    return {circuit.name: circuit for circuit in view.records("open_breakers", Circuit, namespace=namespace)}


def may_start(requirements: str, circuits: Mapping[str, Circuit], now: int) -> bool:
    return breaker.gate(requirement.breakers(requirements), circuits, now) is not None


def _arrivals(view: View, now: int) -> dict[int, float]:
    """The arrivals per second of each lane."""
    since = now - round(WINDOW_S * MICROSECONDS)
    # The clock of an enqueuer may be behind, so an older id may belong to a recent arrival.
    lowest = first_at(since - round(WINDOW_S * MICROSECONDS))
    rows = view.rows("arrivals_in_lanes", lowest=lowest, since=since, most=MOST_ARRIVALS)
    is_short = sum(count for _, count, _ in rows) >= MOST_ARRIVALS
    passed_s = _passed_s(now, min((first for _, _, first in rows), default=since) if is_short else since)
    return {lane: count / passed_s for lane, count, _ in rows}


def _ends(view: View, now: int) -> tuple[dict[int, _Ends], float]:
    """The recent ends of each lane, and over how many seconds they were counted."""
    since = now - round(WINDOW_S * MICROSECONDS)
    rows = view.rows("newest_ends", most=MOST_ENDS)
    if not rows:
        return {}, WINDOW_S
    ids = sorted({str(id) for id, _, _ in rows})
    lanes = {str(id): lane for id, lane in view.rows("lanes_of", ids=ids, lowest=ids[0], highest=ids[-1])}
    earliest = min(finished_at for _, _, finished_at in rows)
    if len(rows) >= MOST_ENDS and earliest > since:
        since = earliest - 1
    found: dict[int, _Ends] = {}
    for id, started_at, finished_at in rows:
        if (lane := lanes.get(str(id))) is not None:
            ends = found.setdefault(lane, _Ends())
            ends.count += 1
            ends.took += max(0, finished_at - started_at)
            ends.lately += finished_at > since
    return found, _passed_s(now, since)


def _workers(view: View, namespace: str, now: int) -> list[Capacity]:
    return [
        Capacity(
            app=row.app,
            queues=msgspec.json.decode(row.queues, type=list[str] | None),
            jobs=msgspec.json.decode(row.jobs, type=frozenset[str]),
            offers=row.offers,
            slots=row.concurrency,
            running=row.running,
            trouble=frozenset(msgspec.json.decode(row.trouble, type=dict[str, str]) if row.trouble else ()),
        )
        for row in reader.workers(view, namespace, _NEVER_STOPPED)
        if row.state == "live" and row.lease_until > now
    ]


def _passed_s(now: int, since: int) -> float:
    return max(1.0, (now - since) / MICROSECONDS)
