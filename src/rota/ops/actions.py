"""Actions on many things at once: the ids that a filter finds are collected first, then acted on in chunks.

A chunk is one transaction that acts on up to 500 items and counts them in the row of the action, so a crash repeats
nothing and loses nothing. Any supervisor or server works on any action; the row is the lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rota.domain import action as rules
from rota.domain.action import MOST_ERRORS, State
from rota.domain.actor import Actor
from rota.domain.decoding import prepare
from rota.domain.errors import TooMany, UsageError
from rota.ids import LAST_ID
from rota.ops.action_items import Doing, Done, act
from rota.ops.audit import audit
from rota.store import action_reader, definition_reader, execution_reader, run_reader, schedule_reader, workflow_reader
from rota.store.action_reader import ActionRow
from rota.store.definition_reader import JobFilter
from rota.store.event_reader import EventFilter, events
from rota.store.execution_reader import Criteria, Where
from rota.store.port import Tx, View
from rota.store.run_reader import RunFilter
from rota.store.scan import Budget
from rota.store.schedule_reader import ScheduleFilter

prepare(Criteria)
prepare(JobFilter)
prepare(ScheduleFilter)
PAGE = 1000
MOST_PREVIEWED = 10_000
BUDGET = Budget(20_000, 1.0)
"""How many rows one transaction reads while it collects, and for how long."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An action that a caller asks for. `filter` has the members of the list's query, by their names in Python."""

    verb: str
    target: str
    filter: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    note: str = ""
    at_most: int = 0
    as_of: int = 0
    rate: float | None = None


class _Selection(msgspec.Struct, frozen=True):
    """The items of an action: those that match the filter and were created up to `as_of`."""

    namespace: str
    target: str
    filter: Mapping[str, Any]
    as_of: int


class Preview(msgspec.Struct, frozen=True, rename="camel"):
    """The items that an action would touch, as far as one transaction can read."""

    count: int
    is_capped: bool
    sample: list[str]


def act_on(tx: Tx, namespace: str, id: str, request: Request, items: Sequence[str], actor: Actor) -> list[Done]:
    """Acts on these items at once. Returns a result for each item."""
    doing = _doing(namespace, id, request.verb, request.target, request.options, request.note, actor)
    found = [act(tx, doing, item) for item in items]
    failed = sum(done.error is not None for done in found)
    after = {"on": request.target, "items": len(items), "failed": failed, "note": request.note}
    audit(tx, namespace, actor, f"action.{request.verb}", request.target, after=after)
    return found


def begin(tx: Tx, namespace: str, id: str, request: Request, actor: Actor) -> ActionRow:
    """Adds an action on all items that match a filter, and collects as many ids as one transaction may.

    Raises `TooMany` if that is more than the action may touch.
    """
    tx.run(
        "add_action",
        id=id,
        namespace=namespace,
        actor=str(actor),
        verb=request.verb,
        target=request.target,
        filter=msgspec.json.encode(request.filter).decode(),
        options=msgspec.json.encode(request.options).decode(),
        note=request.note,
        at_most=request.at_most,
        as_of=request.as_of or tx.now,
        rate=request.rate,
    )
    about = {"on": request.target, "filter": request.filter, "options": request.options, "note": request.note}
    audit(tx, namespace, actor, f"action.{request.verb}", id, after=about)
    row = _known(tx, namespace, id)
    after = _collect(tx, row)
    if after.status is State.REFUSED:
        raise TooMany(
            f"more than {request.at_most:,} {request.target} match: nothing was done; narrow the filter or raise atMost"
        )
    _write(tx, after, tx.now)
    return _known(tx, namespace, id)


def preview(view: View, namespace: str, request: Request) -> Preview:
    """The items that the action would touch, counted up to one more than `at_most`."""
    selection = _Selection(namespace, request.target, request.filter, request.as_of or view.now)
    most = min(max(request.at_most, 1) + 1, MOST_PREVIEWED)
    found, has_more, mark = list[str](), True, None
    while has_more and len(found) < most:
        more, mark, has_more = _more(view, selection, mark, most - len(found))
        found += more
    return Preview(len(found), has_more, found[:10])


def work_on_actions(tx: Tx) -> int:
    """One chunk of an action that is due; returns whether there was one."""
    found = tx.records("action_due", ActionRow)
    if not found:
        return 0
    row = found[0]
    if row.cancel_at is not None:
        _end(tx, row, State.CANCELLED)
    elif row.status is State.COLLECTING:
        after = _collect(tx, row)
        if after.status is State.REFUSED:
            _end(tx, after, State.REFUSED)
        else:
            _write(tx, after, tx.now)
    else:
        _run_chunk(tx, row)
    return 1


def cancel(tx: Tx, namespace: str, id: str, actor: Actor) -> bool:
    """Stops an action before its next chunk. False if it has ended or was stopped already."""
    _known(tx, namespace, id)
    changed = tx.changed("cancel_action", namespace=namespace, id=id) > 0
    if changed:
        audit(tx, namespace, actor, "action.stop", id)
    return changed


def _collect(tx: Tx, row: ActionRow) -> ActionRow:
    """Collects the next ids; the action is running when it has all of them, and refused when they are too many."""
    selection = _Selection(row.namespace, row.target, msgspec.json.decode(row.filter), row.as_of)
    found, mark, has_more = _more(tx, selection, row.mark, row.at_most - row.total + 1)
    total = row.total + len(found)
    if total > row.at_most:
        return msgspec.structs.replace(row, status=State.REFUSED, total=total)
    tx.run("add_action_items", id=row.id, rows=[(row.total + at, item) for at, item in enumerate(found)])
    if has_more:
        return msgspec.structs.replace(row, total=total, mark=mark)
    return msgspec.structs.replace(row, status=State.RUNNING, total=total, mark=mark, started_at=tx.now)


def _run_chunk(tx: Tx, row: ActionRow) -> None:
    handled = row.done + row.failed
    assert row.started_at is not None, "a running action has started"
    most, later = rules.allowed(row.rate, row.started_at, tx.now, handled)
    if later is not None:
        _write(tx, row, later)
        return
    options = msgspec.json.decode(row.options)
    actor = Actor(row.actor, is_recorded_once=True)
    doing = _doing(row.namespace, row.id, row.verb, row.target, options, row.note or "", actor)
    items = [one[0] for one in tx.rows("action_items", id=row.id, low=handled, high=handled + most)]
    found = [act(tx, doing, item) for item in items]
    bad = [done for done in found if done.error is not None]
    errors = msgspec.json.decode(row.errors, type=list[Any])
    errors += [{"id": done.id, "code": done.code, "detail": done.error} for done in bad]
    row = msgspec.structs.replace(
        row,
        done=row.done + len(found) - len(bad),
        failed=row.failed + len(bad),
        errors=msgspec.json.encode(errors[:MOST_ERRORS]).decode(),
    )
    if row.done + row.failed >= row.total:
        _end(tx, row, State.DONE)
    else:
        _write(tx, row, tx.now)


def _end(tx: Tx, row: ActionRow, status: State) -> None:
    tx.run("drop_action_items", id=row.id)
    _write(tx, msgspec.structs.replace(row, status=status, completed_at=tx.now), None)
    after = {"status": status, "done": row.done, "failed": row.failed, "total": row.total}
    audit(tx, row.namespace, row.actor, "action.end", row.id, after=after)


def _write(tx: Tx, row: ActionRow, next_at: int | None) -> None:
    names = ("id", "status", "total", "done", "failed", "mark", "errors", "started_at", "completed_at")
    tx.run("update_action", **{name: getattr(row, name) for name in names}, next_at=next_at)


def _doing(
    namespace: str, id: str, verb: str, target: str, options: Mapping[str, Any], note: str, actor: Actor
) -> Doing:
    silent = Actor(str(actor), actor.address, actor.request, is_recorded_once=True)
    return Doing(namespace=namespace, action=id, verb=verb, target=target, options=options, note=note, actor=silent)


def _known(tx: Tx, namespace: str, id: str) -> ActionRow:
    found = action_reader.action(tx, namespace, id)
    if found is None:
        raise UnknownAction(f"there is no action {id}")
    return found


class UnknownAction(UsageError):
    code = "not_found"


# --- Items that match a filter ---------------------------------------------------------------------------


def _more(view: View, row: _Selection, mark: str | None, most: int) -> tuple[list[str], str | None, bool]:
    """The next items behind `mark`, the mark behind them, and whether there may be more."""
    given = row.filter
    match row.target:
        case "executions":
            return _executions(view, row, given, mark, most)
        case "runs":
            return _runs(view, row, given, mark, most)
        case "events":
            rows, reached = events(view, row.namespace, EventFilter(**{**given, **_bounds(row, mark, most)}))
            return _page([one.id for one in rows], mark, min(most, PAGE), reached)
        case "schedules":
            return _schedules(view, row, mark)
        case _:
            return _jobs(view, row, mark)


def _schedules(view: View, row: _Selection, mark: str | None) -> tuple[list[str], str | None, bool]:
    wanted = msgspec.convert(row.filter, ScheduleFilter)
    place = None if mark is None else msgspec.json.decode(mark, type=tuple[str, str])
    rows = schedule_reader.listed(view, row.namespace, place, PAGE, is_down=False)
    made = schedule_reader.by_ids(view, row.namespace, [one.id for one in rows if wanted.fits(one)])
    found = [f"{one.app}/{one.name}" for one in made.values() if one.created_at <= row.as_of]
    return sorted(found), _mark(rows[-1].name, rows[-1].app) if rows else mark, len(rows) == PAGE


def _jobs(view: View, row: _Selection, mark: str | None) -> tuple[list[str], str | None, bool]:
    wanted = msgspec.convert(row.filter, JobFilter)
    place = None if mark is None else msgspec.json.decode(mark, type=list[str])
    rows = definition_reader.jobs(view, row.namespace, place, PAGE, prefix=wanted.name or "")
    found = [f"{one.app}/{one.name}" for one in rows if wanted.fits(one) and one.made_at <= row.as_of]
    return sorted(found), _mark(rows[-1].name, rows[-1].app, rows[-1].id) if rows else mark, len(rows) == PAGE


def _mark(*place: str) -> str:
    return msgspec.json.encode(place).decode()


def _executions(
    view: View, row: _Selection, given: Mapping[str, Any], mark: str | None, most: int
) -> tuple[list[str], str | None, bool]:
    wanted = msgspec.convert(given, Criteria)
    if not wanted.dead:
        bound = row.as_of + 1
        wanted = msgspec.structs.replace(wanted, created_to=min(wanted.created_to or bound, bound))
    page = execution_reader.page(view, row.namespace, wanted, Where(after=mark), min(most, PAGE), BUDGET)
    ids = page.keys
    if wanted.dead and ids:
        before = action_reader.dead_before(view, row.namespace, ids, row.as_of)
        ids = [id for id in ids if id in before]
    return ids, page.reached or (page.keys[-1] if page.keys else mark), page.has_more


def _runs(
    view: View, row: _Selection, given: Mapping[str, Any], mark: str | None, most: int
) -> tuple[list[str], str | None, bool]:
    names = sorted({one.name for one in workflow_reader.workflows(view, row.namespace)})
    wanted = RunFilter(**{**given, **_bounds(row, mark, most)})
    found = run_reader.page_of_runs(view, row.namespace, wanted, names)
    return _page([one.id for one in found.rows], mark, min(most, PAGE), found.scanned_to)


def _bounds(row: _Selection, mark: str | None, most: int) -> dict[str, Any]:
    until = min(row.filter.get("until", row.as_of + 1), row.as_of + 1)
    return {"before": mark or LAST_ID, "limit": min(most, PAGE), "until": until, "budget": BUDGET.rows}


def _page(ids: list[str], mark: str | None, limit: int, reached: str | None) -> tuple[list[str], str | None, bool]:
    return ids, reached or (ids[-1] if ids else mark), reached is not None or len(ids) == limit
