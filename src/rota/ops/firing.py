"""Ticks become executions: in one transaction with the key of the tick and the cursor of its schedule.

Any node may do this for any schedule, and any number of them at once. A row that another node has is left to it, a tick
that has its key in the ledger is not started again, and a schedule that was changed meanwhile is not moved.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from rota.domain import schedule as schedules
from rota.domain import tick_policy
from rota.domain.errors import DefinitionError, UnknownExecution
from rota.domain.instant import MICROSECONDS
from rota.domain.schedule import Spec
from rota.domain.status import Reason, Status
from rota.domain.tick_policy import Mark, Outcome, Round, Start
from rota.domain.trigger import After
from rota.ops import ending, route, schedule
from rota.ops.place import Batch, place
from rota.ops.route import Route
from rota.store.port import Tx

MOST = 2000
UNREADABLE_S = 60
"""How long a schedule is left alone that this node cannot read; by then another one may."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A schedule that is due."""

    id: int
    shard: int
    namespace: str
    app: str
    name: str
    spec: str
    revision: int
    cursor: int
    next_at: int
    last_execution: str | None
    held: str


class Fired(msgspec.Struct, frozen=True):
    """How many schedules were looked at, and how many executions began."""

    schedules: int
    started: int


class Form(msgspec.Struct, frozen=True):
    """What the executions of schedules that are alike have in common."""

    namespace: str
    app: str
    spec: Spec
    route: Route | None


class Planned(msgspec.Struct, frozen=True):
    """An execution of a tick, before it is written."""

    id: str
    schedule: int
    name: str
    form: Form
    start: Start


def fire(tx: Tx, shards: Sequence[tuple[int, int]], new_ids: Callable[[int], Sequence[str]], most: int = MOST) -> Fired:
    """Decides what is due in `shards`: pairs of a shard and how late a tick must be there before we take it."""
    rows = _due(tx, [(shard, tx.now - patience) for shard, patience in shards], most)
    if not rows:
        return Fired(0, 0)
    busy = _unfinished(tx, [row.last_execution for row in rows if row.last_execution is not None])
    plans = _Plans(tx)
    rounds = [(row, *plan) for row in rows if (plan := plans.of(row, row.last_execution in busy)) is not None]
    ids = iter(new_ids(sum(len(decided.starts) for _, _, decided in rounds)))
    begun = [
        Planned(next(ids), row.id, row.name, form, start) for row, form, decided in rounds for start in decided.starts
    ]
    begun = _with_keys(
        tx, _as_they_came(tx, begun), [(row.id, mark) for row, _, decided in rounds for mark in decided.marks]
    )
    start(tx, begun)
    _cancel_previous(tx, begun, {row.id: row.last_execution for row in rows})
    _move(tx, rounds, begun)
    if plans.unreadable:
        # A newer version has made it, its zone is not known here, or its dates are none. Nobody else waits for that.
        tx.run("postpone_schedules", ids=plans.unreadable, until=tx.now + UNREADABLE_S * MICROSECONDS)
    return Fired(len(rows), len(begun))


def _due(tx: Tx, until: list[tuple[int, int]], most: int) -> list[Row]:
    """As many from each shard; and where few shards have many, all that go into one transaction."""
    each = max(1, most // max(1, len(until)))
    rows = tx.records("due_schedules", Row, shards=until, most=most, each=each)
    if len(rows) < most // 2 and any(number >= each for number in Counter(row.shard for row in rows).values()):
        rows = tx.records("due_schedules", Row, shards=until, most=most, each=most)
    return rows


class _Plans:
    """What to do for each schedule that is due. Those that are alike, and stand alike, are decided once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._route = functools.cache(functools.partial(route.find, tx))
        self._known: dict[tuple[object, ...], tuple[Form, Round]] = {}
        self.unreadable: list[int] = []

    def of(self, row: Row, is_busy: bool) -> tuple[Form, Round] | None:
        """None for one that this node cannot read."""
        key = (row.spec, row.cursor, row.next_at, is_busy, row.held, row.app, row.namespace)
        if key not in self._known:
            try:
                self._known[key] = self._plan(row, is_busy)
            except (DefinitionError, msgspec.DecodeError, ArithmeticError, ValueError):
                self.unreadable.append(row.id)
                return None
        return self._known[key]

    def _plan(self, row: Row, is_busy: bool) -> tuple[Form, Round]:
        spec = schedules.decode(row.spec)
        decided = _decide(self._tx, row, spec, is_busy)
        # A limit of the queue is for callers, not for ticks.
        where = self._route(row.namespace, row.app, spec.job, spec.queue) if decided.starts else None
        if decided.starts and where is None:
            decided = _without_job(decided)
        return Form(row.namespace, row.app, spec, where), decided


def _without_job(decided: Round) -> Round:
    """No worker has ever declared the job: that is said, and the schedule goes on."""
    marks = [Mark(start.at, start.at, 1, Outcome.UNKNOWN_JOB) for start in decided.starts if not start.was_held]
    return msgspec.structs.replace(decided, starts=[], marks=[*decided.marks, *marks])


def _decide(tx: Tx, row: Row, spec: Spec, is_busy: bool) -> Round:
    holidays = schedule.holidays(tx, row.namespace, spec)
    if isinstance(spec.trigger, After):
        return tick_policy.decide_delay(spec, row.cursor, row.next_at, tx.now, is_busy, holidays)
    held = tuple(msgspec.json.decode(row.held, type=list[int])) if row.held != "[]" else ()
    return tick_policy.decide(spec, row.cursor, held, tx.now, is_busy, holidays)


def _unfinished(tx: Tx, ids: list[str]) -> frozenset[str | None]:
    return frozenset(row[0] for row in tx.rows("unfinished", ids=[(id,) for id in ids])) if ids else frozenset()


def _with_keys(tx: Tx, begun: list[Planned], marks: Sequence[tuple[int, Mark]]) -> list[Planned]:
    """Those whose key was free; the ledger is written."""
    held = [one for one in begun if one.start.was_held]
    if held:
        rows = [(one.schedule, one.start.at, one.start.outcome.value, one.id) for one in held]
        tx.run("release_ticks", rows=rows)
    new = [one for one in begun if not one.start.was_held] if held else begun
    taken = add_ticks(tx, [(one.schedule, one.start.at, one.id, one.start.outcome.value) for one in new])
    schedule.record(tx, marks)
    return begun if taken is None else [one for one in begun if one.start.was_held or one.id in taken]


def _as_they_came(tx: Tx, begun: list[Planned]) -> list[Planned]:
    """What has waited for the run before was on time or caught up when it came, and still is."""
    waited = [(one.schedule, one.start.at) for one in begun if one.start.was_held]
    if not waited:
        return begun
    came = {(id, at): came_at for id, at, came_at in tx.rows("ticks_held", rows=waited)}
    outcomes = [tick_policy.outcome_of(one.start, came.get((one.schedule, one.start.at))) for one in begun]
    return [
        msgspec.structs.replace(one, start=msgspec.structs.replace(one.start, outcome=outcome))
        for one, outcome in zip(begun, outcomes, strict=True)
    ]


def add_ticks(tx: Tx, rows: list[tuple[int, int, str, str]]) -> frozenset[str] | None:
    """Takes the key of each tick for an execution. None if all were free; else the executions that got theirs."""
    if not rows or tx.run("add_ticks", rows=rows) == len(rows):
        return None
    return frozenset(row[0] for row in tx.rows("ticks_taken", rows=rows))


def _cancel_previous(tx: Tx, begun: Sequence[Planned], previous: dict[int, str | None]) -> None:
    for one in begun:
        before = previous[one.schedule]
        if one.start.cancels_previous and before is not None:
            with contextlib.suppress(UnknownExecution):  # It has ended and been pruned.
                ending.end(tx, one.form.namespace, before, Status.CANCELLED, Reason.REPLACED)
        previous[one.schedule] = one.id


def start(tx: Tx, planned: Sequence[Planned]) -> None:
    """Places the executions: those whose jitter is over are ready, the others are scheduled."""
    place(tx, [_batch(tx.now, one) for one in planned])


def _batch(now: int, one: Planned) -> Batch:
    spec, where, at = one.form.spec, one.form.route, one.start.at
    assert where is not None, "only ticks of known jobs start"
    run_at = at + schedules.jitter(spec, at) if spec.jitter_s else at
    return Batch(
        {one.id: spec.arguments},
        where,
        "schedule",
        spec.priority,
        run_at,
        # A backfill of the past lines up behind the work of today.
        ranked_at=now if one.start.outcome is Outcome.BACKFILLED else None,
        deadline=_deadline(now, spec, one.start, run_at),
        schedule=one.name,
        tick=at,
        catch_up=0 if one.start.outcome is Outcome.FIRED else 1,
    )


def _deadline(now: int, spec: Spec, start: Start, run_at: int) -> int | None:
    """Until when it must have started. What comes late because somebody wants it so is due when it comes."""
    if spec.start_within_s is None:
        return None
    is_on_time = start.outcome is Outcome.FIRED and not start.was_held
    return (run_at if is_on_time else max(run_at, now)) + round(spec.start_within_s * MICROSECONDS)


def _move(tx: Tx, rounds: Sequence[tuple[Row, Form, Round]], begun: Sequence[Planned]) -> None:
    newest = {one.schedule: one for one in begun}
    if rounds:
        rows = [_moved(tx.now, row, form, decided, newest.get(row.id)) for row, form, decided in rounds]
        tx.run("move_schedules", rows=rows)


def _moved(now: int, row: Row, form: Form, decided: Round, last: Planned | None) -> tuple[object, ...]:
    trigger = form.spec.trigger
    mark = max(decided.marks, key=attrgetter("until")) if decided.marks and last is None else None
    waits_for, next_at = None, decided.next_at
    if decided.held or decided.waits:
        waits_for = last.id if last else row.last_execution
    if isinstance(trigger, After):
        waits_for = last.id if last else waits_for
        if last is None and waits_for is None and next_at is None and (decided.starts or decided.marks):
            next_at = now + trigger.delay  # Nothing was started, so nothing will end.
    return (
        row.id,
        row.revision,
        decided.cursor,
        next_at,
        waits_for,
        msgspec.json.encode(decided.held).decode() if decided.held else "[]",
        last.start.at if last else mark.until if mark else None,
        now - last.start.at if last else None,
        last.start.outcome.value if last else mark.outcome.value if mark else None,
        last.id if last else None,
    )
