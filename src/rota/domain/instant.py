"""Instants are whole microseconds since 1970 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MICROSECONDS = 1_000_000
"""In one second."""


def rfc3339(instant: int) -> str:
    """An instant as text, in UTC, without a fraction if there is none."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)
    return at.isoformat().replace("+00:00", "Z")
