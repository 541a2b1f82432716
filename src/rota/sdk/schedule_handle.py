"""Schedules at run time: a handle on one, by its name."""

from __future__ import annotations

from datetime import datetime

from rota.sdk.client import Client
from rota.sdk.options import instant
from rota.views.schedule import Schedule
from rota.views.tick import Tick

FOREVER = 2**62


class ScheduleHandle:
    """A schedule of an app, by its name, for use in any process. Its methods change the schedule for all workers."""

    __slots__ = ("_client", "name")

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"ScheduleHandle({self.name!r})"

    def info(self) -> Schedule:
        """Its options and its state: the next tick, and the outcome of the last one."""
        return self._client.schedule(self.name)

    def ticks(self, start: datetime | None = None, end: datetime | None = None, limit: int = 1000) -> list[Tick]:
        """Its ledger from `start` to `end`, newest first, at most `limit` of them."""
        low = 0 if start is None else instant(start, "start")
        high = FOREVER if end is None else instant(end, "end")
        return self._client.ticks(self.name, low, high, limit)

    def pause(self, note: str = "") -> bool:
        """No more ticks until `resume`; False if it was paused already."""
        return self._client.pause_schedule(self.name, note)

    def resume(self) -> bool:
        """Resumes from now; ticks of the pause are not made up for."""
        return self._client.resume_schedule(self.name)

    def remove(self) -> bool:
        """Ends it; its ledger stays. False if there is no such schedule any more."""
        return self._client.remove_schedule(self.name)
