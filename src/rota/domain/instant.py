"""Instants are whole microseconds since 1970 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MICROSECONDS = 1_000_000
"""In one second."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def moment(instant: int) -> datetime:
    """An instant as a datetime in UTC; the first or last datetime if it is beyond what a datetime can hold."""
    try:
        return _EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        return _FIRST if instant < 0 else _LAST


def instant(at: datetime) -> int:
    """An aware datetime as an instant."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def rfc3339(instant: int) -> str:
    """An instant as text, in UTC, without a fraction if there is none."""
    return moment(instant).isoformat().replace("+00:00", "Z")
