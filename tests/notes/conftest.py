"""The stores of the conformance suite."""

from __future__ import annotations

from tests.conformance.conftest import clock, store, world

__all__ = ["clock", "store", "world"]
