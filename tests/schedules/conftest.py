"""The stores of the conformance suite, with a timetable."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import clock, store, world
from tests.schedules.timetable import Timetable
from tests.support.world import World

__all__ = ["clock", "store", "table", "world"]


@pytest.fixture
def table(world: World) -> Timetable:
    return Timetable(world)
