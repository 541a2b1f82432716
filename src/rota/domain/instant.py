"""Instants are whole microseconds since 1970 in UTC."""

from __future__ import annotations

MICROSECONDS = 1_000_000
"""In one second."""
