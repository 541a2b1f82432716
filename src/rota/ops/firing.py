"""Fires schedules: one transaction writes the execution of a tick, the tick's key in the ledger, and the schedule's
cursor (the time up to which its ticks are decided).

Any number of supervisors may fire any schedules at the same time. Rows that another transaction has locked are skipped,
a tick whose key is in the ledger is not started again, and the cursor of a schedule that was changed meanwhile is not
moved.
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
from rota.domain.tick_policy import LedgerEntry, Round, Start, TickOutcome
from rota.domain.trigger import After
from rota.ops import dependencies, end_from_outside, schedule
from rota.ops.place import Batch, Blocker, Origin, Route, find_route, place
from rota.store.port import Tx

MOST = 2000
SCHEDULER = Origin(actor="schedule")
UNREADABLE_S = 60
"""After how long a schedule that this process cannot read is due again: another supervisor may be able to read it."""


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
    """How many schedules were decided, and how many executions were placed."""

    schedules: int
    started: int


class Form(msgspec.Struct, frozen=True):
    """The values that schedules with the same spec share."""

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
    """Starts the due ticks of `shards`: pairs of a shard and how late a tick must be before the caller takes it."""
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
    entries = [(row.id, entry) for row, _, decided in rounds for entry in decided.entries]
    begun = _with_keys(tx, _with_outcomes_of_held(tx, begun), entries)
    replaced = _replaced(begun, {row.id: row.last_execution for row in rows})
    new = {one.id for one in begun}
    # Cancel executions of earlier ticks first: rows of executions are locked before the edges of dependencies.
    _cancel(tx, [one for one in replaced if one[1] not in new])
    start(tx, begun)
    _cancel(tx, [one for one in replaced if one[1] in new])
    if rounds:
        newest = {one.schedule: one for one in begun}
        moves = [_moved(tx.now, row, form, decided, newest.get(row.id)) for row, form, decided in rounds]
        tx.run("move_schedules", rows=moves)
    if plans.unreadable:
        # Their definitions were written by a newer version, or have a time zone that this machine does not know, or
        # invalid dates. The other schedules still fire.
        tx.run("postpone_schedules", ids=plans.unreadable, until=tx.now + UNREADABLE_S * MICROSECONDS)
    return Fired(len(rows), len(begun))


def _due(tx: Tx, until: list[tuple[int, int]], most: int) -> list[Row]:
    """The same number from each shard; if only a few shards have due schedules, more from those."""
    each = max(1, most // max(1, len(until)))
    rows = tx.records("due_schedules", Row, shards=until, most=most, each=each)
    if len(rows) < most // 2 and any(number >= each for number in Counter(row.shard for row in rows).values()):
        rows = tx.records("due_schedules", Row, shards=until, most=most, each=most)
    return rows


class _Plans:
    """The decisions for due schedules. Schedules with the same spec and the same state are decided once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._route = functools.cache(functools.partial(find_route, tx))
        self._known: dict[tuple[object, ...], tuple[Form, Round]] = {}
        self.unreadable: list[int] = []

    def of(self, row: Row, is_busy: bool) -> tuple[Form, Round] | None:
        """None for a schedule that this process cannot read."""
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
        # The depth limit of the queue is for callers, not for ticks.
        route = self._route(row.namespace, row.app, spec.job, spec.queue) if decided.starts else None
        if decided.starts and route is None:
            decided = _without_job(decided)
        return Form(row.namespace, row.app, spec, route), decided


def _without_job(decided: Round) -> Round:
    """No worker has ever declared the job: the ledger says so, and the schedule moves on."""
    entries = [
        LedgerEntry(start.at, start.at, 1, TickOutcome.UNKNOWN_JOB) for start in decided.starts if not start.was_held
    ]
    return msgspec.structs.replace(decided, starts=[], entries=[*decided.entries, *entries])


def _decide(tx: Tx, row: Row, spec: Spec, is_busy: bool) -> Round:
    holidays = schedule.holidays(tx, row.namespace, spec)
    if isinstance(spec.trigger, After):
        return tick_policy.decide_delay(spec, row.cursor, row.next_at, tx.now, is_busy, holidays)
    held = tuple(msgspec.json.decode(row.held, type=list[int])) if row.held != "[]" else ()
    return tick_policy.decide(spec, row.cursor, held, tx.now, is_busy, holidays)


def _unfinished(tx: Tx, ids: list[str]) -> frozenset[str | None]:
    return frozenset(row[0] for row in tx.rows("unfinished", ids=[(id,) for id in ids])) if ids else frozenset()


def _with_keys(tx: Tx, begun: list[Planned], entries: Sequence[tuple[int, LedgerEntry]]) -> list[Planned]:
    """Writes the ledger. Returns the executions whose tick had no key yet, and those that were held."""
    held = [one for one in begun if one.start.was_held]
    if held:
        rows = [(one.schedule, one.start.at, one.start.outcome.value, one.id) for one in held]
        tx.run("release_ticks", rows=rows)
    new = [one for one in begun if not one.start.was_held] if held else begun
    taken = add_ticks(tx, [(one.schedule, one.start.at, one.id, one.start.outcome.value) for one in new])
    schedule.record(tx, entries)
    return begun if taken is None else [one for one in begun if one.start.was_held or one.id in taken]


def _with_outcomes_of_held(tx: Tx, begun: list[Planned]) -> list[Planned]:
    """A tick that was held until the last run ended counts as on time or caught up, as it did when it came."""
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
    if not rows or tx.changed("add_ticks", rows=rows) == len(rows):
        return None
    return frozenset(row[0] for row in tx.rows("ticks_taken", rows=rows))


def _replaced(begun: Sequence[Planned], previous: dict[int, str | None]) -> list[tuple[str, str]]:
    """The executions that later ones replace, each with its namespace."""
    found = []
    for one in begun:
        before = previous[one.schedule]
        if one.start.cancels_previous and before is not None:
            found.append((one.form.namespace, before))
        previous[one.schedule] = one.id
    return found


def _cancel(tx: Tx, replaced: Sequence[tuple[str, str]]) -> None:
    for namespace, id in replaced:
        with contextlib.suppress(UnknownExecution):  # It was pruned.
            end_from_outside.end(tx, namespace, id, Status.CANCELLED, Reason.REPLACED)


def start(tx: Tx, planned: Sequence[Planned]) -> None:
    """Places the executions: scheduled until their jitter is over, or waiting until the jobs before them have ended.

    A backfill does not wait: the ends that its ticks would wait for are in the past.
    """
    depending = [
        (one.id, (one.form.namespace, one.form.app, one.form.spec.job))
        for one in planned
        if one.form.route is not None and one.form.route.depends and one.start.outcome is not TickOutcome.BACKFILLED
    ]
    taken = dependencies.take(tx, depending) if depending else {}
    place(tx, [_batch(tx.now, one, *taken.get(one.id, ((), None))) for one in planned])


def _batch(now: int, one: Planned, behind: tuple[Blocker, ...], upstream: str | None) -> Batch:
    spec, route, at = one.form.spec, one.form.route, one.start.at
    assert route is not None, "only ticks of known jobs start"
    run_at = at + schedules.jitter(spec, at) if spec.jitter_s else at
    return Batch(
        {one.id: spec.arguments},
        route,
        SCHEDULER if upstream is None else msgspec.structs.replace(SCHEDULER, upstream=upstream),
        spec.priority,
        run_at,
        # Backfilled executions are ranked behind the work of today.
        ranked_at=now if one.start.outcome is TickOutcome.BACKFILLED else None,
        deadline=_deadline(now, spec, one.start, run_at),
        schedule=one.name,
        tick=at,
        catch_up=0 if one.start.outcome is TickOutcome.FIRED else 1,
        blockers=behind,
    )


def _deadline(now: int, spec: Spec, start: Start, run_at: int) -> int | None:
    """The start deadline. It counts from now for a tick that was caught up, backfilled or held."""
    if spec.start_within_s is None:
        return None
    is_on_time = start.outcome is TickOutcome.FIRED and not start.was_held
    return (run_at if is_on_time else max(run_at, now)) + round(spec.start_within_s * MICROSECONDS)


def _moved(now: int, row: Row, form: Form, decided: Round, last: Planned | None) -> tuple[object, ...]:
    """The new state of a schedule, as a row for `move_schedules`."""
    trigger = form.spec.trigger
    entry = max(decided.entries, key=attrgetter("until")) if decided.entries and last is None else None
    waits_for, next_at = None, decided.next_at
    if decided.held or decided.waits:
        waits_for = last.id if last else row.last_execution
    if isinstance(trigger, After):
        waits_for = last.id if last else waits_for
        if last is None and waits_for is None and next_at is None and (decided.starts or decided.entries):
            next_at = now + trigger.delay  # No execution was started whose end would set the next tick.
    return (
        row.id,
        row.revision,
        decided.cursor,
        next_at,
        waits_for,
        msgspec.json.encode(decided.held).decode() if decided.held else "[]",
        last.start.at if last else entry.until if entry else None,
        now - last.start.at if last else None,
        last.start.outcome.value if last else entry.outcome.value if entry else None,
        last.id if last else None,
    )
