"""Backfill: ticks of the past that somebody asks for by name. A tick that has started before is not started again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from rota.domain import schedule as schedules
from rota.domain import ticking
from rota.domain import trigger as triggers
from rota.domain.errors import DefinitionError, UnknownJob
from rota.domain.schedule import Spec
from rota.domain.ticking import Mark, Outcome, Start
from rota.domain.trigger import After
from rota.ops import firing, schedule
from rota.ops.audit import audit
from rota.store.port import Tx

MOST = 200


class Step(msgspec.Struct, frozen=True):
    """What one piece of a backfill did, and from which instant on the next one goes; None at the end."""

    started: int
    known: int
    left_out: int
    after: int | None


class _Range(msgspec.Struct, frozen=True, array_like=True):
    at: int
    until: int
    count: int
    outcome: Outcome


def backfill(
    tx: Tx,
    namespace: str,
    app: str,
    name: str,
    after: int,
    until: int,
    actor: str,
    new_ids: Callable[[int], Sequence[str]],
    most: int = MOST,
) -> Step:
    """Starts the ticks in (after, until] that have not started yet, as far as one transaction goes."""
    known = schedule.known(tx, namespace, app, name)
    spec = schedules.decode(known.spec)
    if isinstance(spec.trigger, After):
        raise DefinitionError(f"schedule {name!r} has a fixed delay, and so no ticks of its own in the past")
    routes = firing.Routes(tx)
    if routes.of(namespace, app, spec) is None:
        raise UnknownJob(f"app {app!r} has no job {spec.job!r}: start a worker of the app once")
    high = min(until, known.cursor)  # What is not decided yet is not the past.
    wanted, seen = _ticks(spec, after, high, most)
    if not wanted:
        return Step(0, 0, 0, None)
    started = {row[0] for row in tx.rows("ticks_started", schedule=known.id, low=wanted[0], high=wanted[-1])}
    holidays = schedule.holidays(tx, namespace, spec)
    new = [at for at in wanted if at not in started and not ticking.is_excluded(spec, at, holidays)]
    if new:
        _make_room(tx, known.id, spec, new)
        _start(tx, known, spec, new, new_ids(len(new)), routes)
        words = {"from": wanted[0], "until": wanted[-1], "started": len(new)}
        audit(tx, actor, "schedule.backfill", f"{app}.{name}", after=words)
    left_out = len(wanted) - len(new) - len(started)
    return Step(len(new), len(started), left_out, wanted[-1] if seen == most else None)


def count(spec: Spec, after: int, until: int) -> int:
    """How many ticks a backfill would look at."""
    return triggers.count(spec.trigger, after, until)


def _ticks(spec: Spec, after: int, until: int, most: int) -> tuple[list[int], int]:
    found: list[int] = []
    while len(found) < most and (tick := triggers.first(spec.trigger, after, until)) is not None:
        found.append(tick.at)
        after = tick.at
    return found, len(found)


def _make_room(tx: Tx, id: int, spec: Spec, new: Sequence[int]) -> None:
    """Takes the ticks out of the ranges in which the ledger has them, so that each has one outcome."""
    ranges = tx.records("ranges_over", _Range, schedule=id, low=new[0], high=new[-1])
    split: list[Mark] = []
    for known in ranges:
        low = known.at - 1
        for at in (at for at in new if known.at <= at <= known.until):
            split += ticking.stretch(spec, low, at - 1, known.outcome)
            low = at
        split += ticking.stretch(spec, low, known.until, known.outcome)
    if ranges:
        tx.run("drop_marks", schedule=id, ats=[known.at for known in ranges])
        schedule.record(tx, id, split)


def _start(
    tx: Tx, known: schedule.Known, spec: Spec, new: Sequence[int], ids: Sequence[str], routes: firing.Routes
) -> None:
    rows = [(known.id, at, at, 1, id, Outcome.BACKFILLED.value) for at, id in zip(new, ids, strict=True)]
    taken = {row[1] for row in tx.rows("add_ticks", rows=rows)}
    planned = [
        firing.Planned(id, known.namespace, known.app, known.name, spec, Start(at, Outcome.BACKFILLED))
        for at, id in zip(new, ids, strict=True)
        if at in taken
    ]
    firing.start(tx, planned, routes)
