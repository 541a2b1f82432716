"""Schedules: declared with the code, or added, changed, paused and removed at run time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from operator import itemgetter

import msgspec

from rota.domain import payload, tick_policy
from rota.domain import schedule as schedules
from rota.domain.errors import DefinitionError, UnknownSchedule
from rota.domain.schedule import Spec
from rota.domain.tick_policy import LedgerEntry, TickOutcome
from rota.domain.trigger import After, At
from rota.ops import calendars
from rota.ops.audit import audit
from rota.ops.quotas import check_quota
from rota.store.hints import Due
from rota.store.port import Tx

CODE, RUN_TIME = "code", "run_time"


class Known(msgspec.Struct, frozen=True, array_like=True):
    """A schedule and its state."""

    id: int
    name: str
    origin: str
    spec: str
    cursor: int
    held: str
    paused_at: int | None


def declare(tx: Tx, namespace: str, app: str, wanted: Sequence[tuple[str, Spec]], actor: str = "worker") -> list[str]:
    """Makes the app's declared schedules those that its code has. Returns what was done, in words.

    Schedules that were added at run time stay, unless the code now declares a schedule of the same name.
    """
    known = {name: spec for _, name, spec in tx.rows("declared_schedules", namespace=namespace, app=app)}
    texts = {name: schedules.encode(spec) for name, spec in wanted}
    gone = sorted(known.keys() - texts.keys())
    changed = [(name, spec) for name, spec in wanted if known.get(name) != texts[name]]
    if gone:
        _remove(tx, namespace, app, gone)
    if changed:
        _put(tx, namespace, app, changed, CODE)
    done = [("removed", name) for name in gone]
    done += [("changed" if name in known else "added", name) for name, _ in changed]
    for what, name in done:
        audit(tx, namespace, actor, "schedule.declare", f"{app}.{name}", after={"what": what})
    return [f"{what} {name}" for what, name in done]


def put(tx: Tx, namespace: str, app: str, name: str, spec: Spec, actor: str, *, origin: str = RUN_TIME) -> bool:
    """Adds a schedule at run time, or changes it; returns whether that changed anything."""
    known = _named(tx, namespace, app, name)
    text = schedules.encode(spec)
    if known is not None and known.spec == text and origin in (RUN_TIME, known.origin):
        return False
    if known is not None and known.origin == CODE:
        raise DefinitionError(
            f"schedule {name!r} is declared in the code of {app!r}: change it there, or choose a name"
        )
    _refuse_if_over(spec, tx.now)
    if unset := calendars.unset(tx, namespace, [spec]):
        raise DefinitionError(f"calendars: there is no calendar {unset[0]!r}; set it with app.calendar() first")
    _put(tx, namespace, app, [(name, spec)], origin)
    audit(tx, namespace, actor, "schedule.put", f"{app}.{name}", before=known and known.spec, after=text)
    return True


def remove(tx: Tx, namespace: str, app: str, name: str, actor: str) -> bool:
    """Removes a schedule; its ledger and the executions that it has started stay. False if there is none."""
    known = _named(tx, namespace, app, name)
    if known is None:
        return False
    _remove(tx, namespace, app, [name])
    audit(tx, namespace, actor, "schedule.remove", f"{app}.{name}", before=known.spec)
    return True


def pause(tx: Tx, namespace: str, app: str, name: str, actor: str, note: str = "") -> bool:
    """Starts no more ticks of the schedule until it is resumed; False if it was paused already."""
    found = known(tx, namespace, app, name)
    if found.paused_at is not None:
        return False
    note = payload.clean(str(note), payload.MOST_NOTE)
    tx.run("pause_schedule", id=found.id, actor=actor, note=note, cursor=_close(tx, found))
    audit(tx, namespace, actor, "schedule.pause", f"{app}.{name}", after={"note": note})
    return True


def resume(tx: Tx, namespace: str, app: str, name: str, actor: str) -> bool:
    """Starts ticks again from now on; the ledger has those since the pause as paused. False if it was not paused."""
    found = known(tx, namespace, app, name)
    if found.paused_at is None:
        return False
    now = _close(tx, found)
    next_at = first_at(schedules.decode(found.spec), now)
    tx.run("resume_schedule", id=found.id, next_at=next_at, cursor=now)
    audit(tx, namespace, actor, "schedule.resume", f"{app}.{name}")
    _tell(tx, [next_at])
    return True


def holidays(tx: Tx, namespace: str, spec: Spec) -> frozenset[date]:
    """All dates on which the schedule does not fire."""
    found = schedules.days(spec.excluded)
    for name in spec.calendars:
        known = tx.recent("calendar_days", 1.0, namespace=namespace, name=name)
        if known:
            found |= schedules.days(tuple(msgspec.json.decode(known[0])))
    return found


def record(tx: Tx, entries: Sequence[tuple[int, LedgerEntry]]) -> None:
    """Writes ticks that started nothing to the ledger, each with the id of its schedule."""
    if entries:
        rows = [(schedule, entry.at, entry.until, entry.count, entry.outcome.value) for schedule, entry in entries]
        tx.run("add_marks", rows=rows)


def first_at(spec: Spec, now: int) -> int | None:
    """When a schedule that begins now is first due. One with a fixed delay is due at once."""
    if isinstance(spec.trigger, After):
        return max(now, spec.start or now)
    return tick_policy.next_at(spec, now)


def _refuse_if_over(spec: Spec, now: int) -> None:
    """Refuses a schedule that would never fire, if it is added at run time. A schedule in code may be over."""
    if first_at(spec, now) is not None and (spec.end is None or spec.end >= now):
        return
    if isinstance(spec.trigger, At) and (spec.end is None or max(spec.trigger.instants) <= spec.end):
        raise DefinitionError(
            "at: the time is in the past, so the schedule would never fire; to run the job now, enqueue it"
        )
    raise DefinitionError("end: the schedule never fires between now and its end")


def _put(tx: Tx, namespace: str, app: str, wanted: Sequence[tuple[str, Spec]], origin: str) -> None:
    before = {known.name: known for known in _all_named(tx, namespace, app, [name for name, _ in wanted])}
    if new := len(wanted) - len(before):
        check_quota(tx, namespace, "max_schedules", new)
    rows = []
    # In the order of names: two transactions that add the same names in different orders would deadlock.
    for name, spec in sorted(wanted, key=itemgetter(0)):
        delay = spec.trigger.delay if isinstance(spec.trigger, After) else None
        shard = schedules.shard(namespace, spec.job)
        cursor = _close(tx, before[name]) if name in before else tx.now
        rows.append((name, spec.job, schedules.encode(spec), shard, cursor, first_at(spec, cursor), delay))
    where = {"namespace": namespace, "app": app, "origin": origin}
    tx.run("change_schedules", rows=rows, **where)
    tx.run("add_schedules", rows=rows, **where)
    _tell(tx, [row[5] for row in rows])


def _remove(tx: Tx, namespace: str, app: str, names: Sequence[str]) -> None:
    for known in _all_named(tx, namespace, app, names):
        _close(tx, known)
    tx.run("remove_schedules", namespace=namespace, app=app, names=list(names))


def _close(tx: Tx, known: Known) -> int:
    """Writes the outcome of all open ticks to the ledger, and returns the instant up to which all are decided now.

    Ticks that are not decided yet will not start any more, nor will those that wait for the end of the last run.
    """
    now = max(tx.now, known.cursor)
    outcome = TickOutcome.MISSED if known.paused_at is None else TickOutcome.PAUSED
    spec = schedules.decode(known.spec)
    left = tick_policy.stretch(spec, *tick_policy.bounds(spec, known.cursor, now), outcome)
    record(tx, [(known.id, entry) for entry in left])
    if held := msgspec.json.decode(known.held, type=list[int]):
        tx.run("release_ticks", rows=[(known.id, at, TickOutcome.OVERLAP.value, None) for at in held])
    return now


def _tell(tx: Tx, times: Sequence[int | None]) -> None:
    known = [at for at in times if at is not None]
    if known:
        tx.tell(Due(min(known)))


def _named(tx: Tx, namespace: str, app: str, name: str) -> Known | None:
    return next(iter(_all_named(tx, namespace, app, [name])), None)


def _all_named(tx: Tx, namespace: str, app: str, names: Sequence[str]) -> list[Known]:
    """Locked, in the order of their names."""
    return tx.records("schedules_named", Known, namespace=namespace, app=app, names=list(names))


def known(tx: Tx, namespace: str, app: str, name: str) -> Known:
    """The schedule of that name, locked."""
    found = _named(tx, namespace, app, name)
    if found is None:
        raise UnknownSchedule(f"app {app!r} has no schedule {name!r}; `rota schedules` lists them")
    return found
