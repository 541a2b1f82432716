"""Applies an action to one item. A failed item has an error of its own; the other items are not affected.

The operations here check before they write: a refused item has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rota import ids
from rota.domain import rank
from rota.domain.errors import Conflict, RotaError, StoreError, UnknownJob, UnknownSchedule, UsageError
from rota.domain.status import TERMINAL
from rota.ops import backfill, control, job_pauses, schedule
from rota.ops.events import replay as events
from rota.ops.move_in_line import Move, move_in_line
from rota.ops.runs.retry import Request, retry
from rota.store import definition_reader, reader, run_reader, schedule_reader
from rota.store.port import Tx

MOST_DIGITS = 18
"""The most digits of a schedule's id: longer numbers do not fit into the databases' integers."""


class Doing(msgspec.Struct, frozen=True, kw_only=True):
    """An action on one item, and the caller that asked for it."""

    namespace: str
    verb: str
    target: str
    options: Mapping[str, Any]
    note: str
    actor: str
    action: str
    """The id of the action. The ids of new executions are derived from it and from the item."""


class Done(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The result for one item. `changed` is false if there was nothing to do."""

    id: str
    changed: bool
    created_id: str | None = None
    """The id of the new execution of a replay; null for other actions."""
    error: str | None = None
    """Why it failed, in words; null if it did not."""
    code: str | None = None
    """Why it failed, as a code; null if it did not."""
    started: int | None = None
    """How many ticks a backfill started; null for other actions."""


def act(tx: Tx, doing: Doing, item: str) -> Done:
    try:
        return _EFFECTS[doing.target, doing.verb](tx, doing, item)
    except StoreError:
        raise
    except RotaError as error:
        return Done(item, changed=False, error=str(error), code=error.code)


def _cancel(tx: Tx, doing: Doing, item: str) -> Done:
    before = reader.status(tx, doing.namespace, item)
    if before in TERMINAL:
        return Done(item, changed=False)
    control.cancel(tx, doing.namespace, item, doing.actor)
    return Done(item, changed=True)


def _replay(tx: Tx, doing: Doing, item: str) -> Done:
    if doing.options.get("onlyDead"):  # Skips a dead letter that was replayed or discarded meanwhile.
        made = control.replay(tx, doing.namespace, {item: _new_id(tx, doing, item)}, doing.actor)
        return Done(item, changed=bool(made), created_id=made[0] if made else None)
    if reader.status(tx, doing.namespace, item) not in TERMINAL:
        raise Conflict(f"{item} has not ended: it is not replayed")
    new = control.repeat(tx, doing.namespace, item, _new_id(tx, doing, item), doing.actor)
    return Done(item, changed=True, created_id=new)


def _discard(tx: Tx, doing: Doing, item: str) -> Done:
    reader.status(tx, doing.namespace, item)
    return Done(item, changed=control.discard(tx, doing.namespace, [item], doing.actor) > 0)


def _update(tx: Tx, doing: Doing, item: str) -> Done:
    priority = rank.level(doing.options["set"]["priority"])
    return Done(item, changed=move_in_line(tx, doing.namespace, item, Move(priority=priority), doing.actor))


def _retry(tx: Tx, doing: Doing, item: str) -> Done:
    new = retry(tx, doing.namespace, item, _new_id(tx, doing, item), doing.actor, Request())
    return Done(item, changed=True, created_id=new)


def _cancel_run(tx: Tx, doing: Doing, item: str) -> Done:
    if not run_reader.is_run(tx, doing.namespace, item):
        raise UsageError(f"{item} is not a run")
    return _cancel(tx, doing, item)


def _replay_event(tx: Tx, doing: Doing, item: str) -> Done:
    return Done(item, changed=events.replay(tx, doing.namespace, item, doing.actor) > 0)


def _pause_schedule(tx: Tx, doing: Doing, item: str) -> Done:
    app, name = _schedule(tx, doing, item)
    return Done(item, changed=schedule.pause(tx, doing.namespace, app, name, doing.actor, doing.note))


def _resume_schedule(tx: Tx, doing: Doing, item: str) -> Done:
    app, name = _schedule(tx, doing, item)
    return Done(item, changed=schedule.resume(tx, doing.namespace, app, name, doing.actor))


def _backfill(tx: Tx, doing: Doing, item: str) -> Done:
    app, name = _schedule(tx, doing, item)
    after, until, most = (int(doing.options[key]) for key in ("from", "to", "most"))
    started, place = 0, 0

    def new_ids(count: int) -> list[str]:
        nonlocal place
        place += count
        return [ids.named(tx.now, f"{doing.action} {item} {n}", n) for n in range(place - count, place)]

    at: int | None = after - 1  # Both ends are included.
    while at is not None and started < most:
        step = backfill.backfill(
            tx, doing.namespace, app, name, at, until, doing.actor, new_ids, min(backfill.MOST, most - started)
        )
        started, at = started + step.started, step.after
    return Done(item, changed=started > 0, started=started)


def _pause_job(tx: Tx, doing: Doing, item: str) -> Done:
    app, name = _job(tx, doing, item)
    return Done(item, changed=job_pauses.pause(tx, doing.namespace, app, name, doing.actor, doing.note))


def _resume_job(tx: Tx, doing: Doing, item: str) -> Done:
    app, name = _job(tx, doing, item)
    return Done(item, changed=job_pauses.resume(tx, doing.namespace, app, name, doing.actor))


def _schedule(tx: Tx, doing: Doing, item: str) -> tuple[str, str]:
    """The app and the name of a schedule that is given by its id, its name, or both as `app/name`."""
    app, separator, name = item.partition("/")
    if separator:
        return app, name
    if item.isdecimal() and item.isascii() and len(item) <= MOST_DIGITS:
        found = list(schedule_reader.by_ids(tx, doing.namespace, [int(item)]).values())
    else:
        found = [row for row in schedule_reader.schedules(tx, doing.namespace, None, item) if row.name == item]
    if len(found) > 1:
        apps = ", ".join(row.app for row in found)
        raise AmbiguousSchedule(f"the apps {apps} have a schedule {item}: write APP/{item}, or use an id")
    if not found or found[0].removed_at is not None:
        raise UnknownSchedule(f"there is no schedule {item!r}")
    return found[0].app, found[0].name


def _job(tx: Tx, doing: Doing, item: str) -> tuple[str, str]:
    """The same for a job."""
    app, separator, name = item.partition("/")
    if separator:
        return app, name
    found = definition_reader.find(tx, doing.namespace, item)
    if found is None or found.deleted_at is not None:
        raise UnknownJob(f"there is no job {item!r}")
    return found.app, found.name


class AmbiguousSchedule(UsageError):
    code = "ambiguous_name"


def _new_id(tx: Tx, doing: Doing, item: str) -> str:
    return ids.named(tx.now, f"{doing.action} {item}")


_Effect = Callable[[Tx, Doing, str], Done]
_EFFECTS: dict[tuple[str, str], _Effect] = {
    ("executions", "cancel"): _cancel,
    ("executions", "replay"): _replay,
    ("executions", "discard"): _discard,
    ("executions", "update"): _update,
    ("runs", "cancel"): _cancel_run,
    ("runs", "retry"): _retry,
    ("events", "replay"): _replay_event,
    ("schedules", "backfill"): _backfill,
    ("schedules", "pause"): _pause_schedule,
    ("schedules", "resume"): _resume_schedule,
    ("jobs", "pause"): _pause_job,
    ("jobs", "resume"): _resume_job,
}
