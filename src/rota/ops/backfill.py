"""Backfill: runs past ticks of a schedule on request. Safe to rerun: ticks that have already run are skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from rota.domain import schedule as schedules
from rota.domain import tick_policy
from rota.domain import trigger as triggers
from rota.domain.errors import DefinitionError, UnknownJob
from rota.domain.schedule import Spec
from rota.domain.tick_policy import LedgerEntry, Start, TickOutcome
from rota.domain.ticks import Tick
from rota.domain.trigger import After
from rota.ops import firing, schedule
from rota.ops.audit import audit
from rota.ops.place import find_route
from rota.store.port import Tx

MOST = 200


class Step(msgspec.Struct, frozen=True):
    """The result of one transaction of a backfill, and the instant after which the next one begins; None at the end."""

    started: int
    known: int
    left_out: int
    after: int | None


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
    """Starts the ticks in (after, until] that have not started yet, at most `most` of them."""
    known = schedule.known(tx, namespace, app, name)
    spec = schedules.decode(known.spec)
    if isinstance(spec.trigger, After):
        raise DefinitionError(f"schedule {name!r} has a fixed delay, and so no ticks of its own in the past")
    route = find_route(tx, namespace, app, spec.job, spec.queue)
    if route is None:
        raise UnknownJob(f"app {app!r} has no job {spec.job!r}: start a worker of the app once")
    # Ticks after the cursor are not decided yet: the schedule will start them itself.
    wanted = _ticks(spec, *tick_policy.bounds(spec, after, min(until, known.cursor)), most)
    if not wanted:
        return Step(0, 0, 0, None)
    low, high = wanted[0].at, wanted[-1].at
    holidays = schedule.holidays(tx, namespace, spec)
    # Ticks of earlier schedules of this name count, too: it may have been removed and added again.
    ever = [row[0] for row in tx.rows("schedules_ever", namespace=namespace, app=app, name=name)]
    started = {row[0] for row in tx.rows("ticks_started", schedules=ever, low=low, high=high)}
    left = [tick for tick in wanted if tick.at not in started]
    new = [tick.at for tick in left if tick_policy.reason_against(spec, tick, holidays) is None]
    if new:
        for id in ever:
            _split_ranges(tx, id, spec, new)
        _start(tx, known, firing.Form(namespace, app, spec, route), new, new_ids(len(new)))
        words = {"from": low, "until": high, "started": len(new)}
        audit(tx, namespace, actor, "schedule.backfill", f"{app}.{name}", after=words)
    return Step(len(new), len(wanted) - len(left), len(left) - len(new), high if len(wanted) == most else None)


def count(spec: Spec, after: int, until: int) -> int:
    """How many ticks are in the range of a backfill."""
    return triggers.count(spec.trigger, *tick_policy.bounds(spec, after, until))


def _ticks(spec: Spec, after: int, until: int, most: int) -> list[Tick]:
    found: list[Tick] = []
    while len(found) < most and (tick := triggers.first(spec.trigger, after, until)) is not None:
        found.append(tick)
        after = tick.at
    return found


def _split_ranges(tx: Tx, id: int, spec: Spec, new: Sequence[int]) -> None:
    """Removes the ticks from the ranges of the ledger that contain them, so that each tick has one outcome."""
    gone: list[int] = []
    split: list[LedgerEntry] = []
    rows = tx.rows("mark_over", schedule=id, low=new[0])
    rows += tx.rows("marks_between", schedule=id, low=new[0], high=new[-1])
    for at, until, count, outcome in rows:
        known = LedgerEntry(at, until, count, TickOutcome(outcome))
        inside = [at for at in new if known.at <= at <= known.until]
        if tick_policy.stretch(spec, known.at - 1, known.until, known.outcome) != [known]:
            # The schedule was changed since, so the ticks of this range are not known: only its first one is removed.
            inside = [known.at] if known.at in inside else []
            rest = [LedgerEntry(known.at + 1, known.until, known.count - 1, known.outcome)] if known.count > 1 else []
        else:
            edges = [known.at - 1, *inside]
            ends = [at - 1 for at in inside] + [known.until]
            pieces = zip(edges, ends, strict=True)
            rest = [entry for low, high in pieces for entry in tick_policy.stretch(spec, low, high, known.outcome)]
        if inside:
            gone.append(known.at)
            split += rest
    if gone:
        tx.run("drop_marks", schedule=id, ats=gone)
        schedule.record(tx, [(id, entry) for entry in split])


def _start(tx: Tx, known: schedule.Known, form: firing.Form, new: Sequence[int], ids: Sequence[str]) -> None:
    pairs = list(zip(new, ids, strict=True))
    taken = firing.add_ticks(tx, [(known.id, at, id, TickOutcome.BACKFILLED.value) for at, id in pairs])
    planned = [
        firing.Planned(id, known.id, known.name, form, Start(at, TickOutcome.BACKFILLED))
        for at, id in pairs
        if taken is None or id in taken
    ]
    firing.start(tx, planned)
