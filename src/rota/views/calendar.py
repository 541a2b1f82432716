"""A calendar: a named set of dates that schedules leave out."""

from __future__ import annotations

from datetime import datetime

import msgspec

from rota.store import calendar_reader
from rota.store.calendar_reader import CalendarRow
from rota.store.port import View
from rota.views.shape import Shape, shaped

_days = msgspec.json.Decoder(list[str]).decode


class CalendarInfo(Shape, frozen=True):
    """A calendar as a list has it."""

    name: str
    day_count: int
    """How many days it has."""
    updated_at: datetime


class CalendarDefinition(Shape, frozen=True):
    """The body of a PUT."""

    days: list[str]


class Calendar(CalendarInfo, frozen=True):
    """`days` are in order."""

    days: list[str]
    definition: CalendarDefinition


def calendars(view: View, namespace: str) -> list[CalendarInfo]:
    """By name."""
    rows = sorted(calendar_reader.calendars(view, namespace), key=lambda row: row.name)
    return [shaped(CalendarInfo, row, day_count=len(_days(row.days))) for row in rows]


def of_row(row: CalendarRow) -> Calendar:
    days = _days(row.days)
    return shaped(Calendar, row, day_count=len(days), days=days, definition=CalendarDefinition(days))
