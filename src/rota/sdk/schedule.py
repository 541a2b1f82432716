"""Schedules at run time: a handle on one, by its name."""

from __future__ import annotations

from rota.domain.errors import UnknownSchedule
from rota.ops import schedule
from rota.sdk.connection import Connection
from rota.store import timetable
from rota.store.timetable import ScheduleRow, TickRow


class Schedule:
    """A schedule of an app. It may be used from any process; what it does applies on every node."""

    __slots__ = ("_app", "_connection", "name")

    def __init__(self, connection: Connection, app: str, name: str) -> None:
        self._connection = connection
        self._app = app
        self.name = name

    def __repr__(self) -> str:
        return f"Schedule({self.name!r})"

    def info(self) -> ScheduleRow:
        """How it stands: when it comes next, and what became of the last tick."""
        namespace = self._connection.settings.namespace
        found = self._connection.store().read(timetable.schedule_called, namespace, self._app, self.name)
        if found is None:
            raise UnknownSchedule(f"app {self._app!r} has no schedule {self.name!r}")
        return found

    def ticks(self, start: int = 0, end: int = 2**62, most: int = 1000) -> list[TickRow]:
        """Its ledger between two instants (microseconds since 1970 UTC), newest first."""
        namespace = self._connection.settings.namespace
        return self._connection.store().read(timetable.ticks, namespace, self._app, self.name, start, end, most)

    def pause(self, note: str = "") -> bool:
        """No more ticks until `resume`; False if it was paused already."""
        return self._do(schedule.pause, note)

    def resume(self) -> bool:
        """Goes on from now, without what would have come meanwhile."""
        return self._do(schedule.resume)

    def remove(self) -> bool:
        """Ends it; its ledger stays. False if there is no such schedule any more."""
        return self._do(schedule.remove)

    def _do(self, op: object, *args: object) -> bool:
        namespace = self._connection.settings.namespace
        return self._connection.store().transact(op, namespace, self._app, self.name, "sdk", *args)  # type: ignore[arg-type]
