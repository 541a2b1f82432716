"""Schedules at run time: a handle on one, by its name."""

from __future__ import annotations

from rota.domain.errors import UnknownSchedule
from rota.sdk.client import Client
from rota.store.schedule_reader import ScheduleRow, TickRow


class Schedule:
    """A schedule of an app. It may be used from any process; its methods apply on every node."""

    __slots__ = ("_client", "name")

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"Schedule({self.name!r})"

    def info(self) -> ScheduleRow:
        """Its state: the next tick, and the outcome of the last one."""
        found = self._client.schedule(self.name)
        if found is None:
            raise UnknownSchedule(f"the app has no schedule {self.name!r}")
        return found

    def ticks(self, start: int = 0, end: int = 2**62, most: int = 1000) -> list[TickRow]:
        """Its ledger between two instants (microseconds since 1970 UTC), newest first."""
        return self._client.ticks(self.name, start, end, most)

    def pause(self, note: str = "") -> bool:
        """No more ticks until `resume`; False if it was paused already."""
        return self._client.pause_schedule(self.name, note)

    def resume(self) -> bool:
        """Resumes from now; ticks of the pause are not made up for."""
        return self._client.resume_schedule(self.name)

    def remove(self) -> bool:
        """Ends it; its ledger stays. False if there is no such schedule any more."""
        return self._client.remove_schedule(self.name)
