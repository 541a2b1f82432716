"""Reads calendars."""

from __future__ import annotations

import msgspec

from rota.store.port import View


class CalendarRow(msgspec.Struct, frozen=True, array_like=True):
    """`days` is a JSON array of dates."""

    name: str
    days: str
    updated_at: int
    revision: int


def calendars(view: View, namespace: str) -> list[CalendarRow]:
    return view.records("calendars", CalendarRow, namespace=namespace)


def calendar(view: View, namespace: str, name: str) -> CalendarRow | None:
    found = view.records("calendar", CalendarRow, namespace=namespace, name=name)
    return found[0] if found else None
