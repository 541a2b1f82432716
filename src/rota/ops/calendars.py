"""Calendars: named sets of dates that schedules leave out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rota.domain import schedule as schedules
from rota.domain.errors import DefinitionError
from rota.domain.schedule import Spec
from rota.ops.audit import audit
from rota.store.port import Tx

MOST_DAYS = 10_000


class User(msgspec.Struct, frozen=True):
    """A schedule that leaves out the dates of a calendar."""

    id: int
    app: str
    name: str


def put(tx: Tx, namespace: str, name: str, days: Sequence[str], actor: str) -> bool:
    """Makes a calendar, or replaces its dates; returns whether that changed anything."""
    return _write(tx, "set_calendar", namespace, name, days, actor)


def add(tx: Tx, namespace: str, name: str, days: Sequence[str], actor: str) -> bool:
    """Makes a calendar; False if there is one of this name."""
    return _write(tx, "add_calendar", namespace, name, days, actor)


def remove(tx: Tx, namespace: str, name: str, actor: str) -> bool:
    """Removes a calendar that no schedule uses; the caller has checked `users`. False if there is none."""
    if not tx.changed("remove_calendar", namespace=namespace, name=name):
        return False
    audit(tx, namespace, actor, "calendar.remove", name)
    return True


def lock(tx: Tx, namespace: str, name: str) -> int | None:
    """Locks a calendar, so that no schedule begins to use it, and returns its revision; None if there is none."""
    row = tx.one("lock_calendar", namespace=namespace, name=name)
    return None if row is None else int(row[0])


def users(tx: Tx, namespace: str, name: str) -> list[User]:
    """The schedules that use a calendar."""
    rows = tx.rows("schedules_with", namespace=namespace, part=msgspec.json.encode(name).decode())
    return [User(id, app, its) for id, app, its, text in rows if name in schedules.decode(text).calendars]


def unset(tx: Tx, namespace: str, specs: Iterable[Spec]) -> list[str]:
    """The calendars that the schedules name and that do not exist: they exclude no date.

    The others cannot be removed until the transaction ends.
    """
    wanted = sorted({name for spec in specs for name in spec.calendars})
    known = {name for (name,) in tx.rows("hold_calendars", namespace=namespace, names=wanted)} if wanted else set()
    return [name for name in wanted if name not in known]


def _write(tx: Tx, statement: str, namespace: str, name: str, days: Sequence[str], actor: str) -> bool:
    if len(days) > MOST_DAYS:
        raise DefinitionError(f"a calendar has at most {MOST_DAYS:,} dates")
    dates = sorted(schedules.days(tuple(days), "days"))
    text = msgspec.json.encode([day.isoformat() for day in dates]).decode()
    if not tx.changed(statement, namespace=namespace, name=name, days=text):
        return False
    audit(tx, namespace, actor, "calendar.set", name, after={"days": len(dates)})
    return True
