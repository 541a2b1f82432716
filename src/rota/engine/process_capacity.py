"""For how many more jobs that run in processes of their own a worker should claim.

Jobs of a pool are bounded by its processes. Commands are bounded by nothing but the worker's slots, until one cannot be
started: then, as with a pool that cannot start processes, none is claimed for a while, and then one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

from rota.clock import Clock
from rota.domain.requirement import COMMANDS, UNBOUNDED, Room
from rota.engine.pace import Pace
from rota.executors.port import Executor, Processes

MOST_WORDS = 200


class ProcessCapacity:
    """All processes that the executors of a worker share: its pools, and its commands."""

    def __init__(
        self, targets: Mapping[str, Executor], clock: Clock, alone: Mapping[str, Executor] | None = None
    ) -> None:
        """The executors in `alone` are for suspects, which no claim counts."""
        self._known = {one for target in targets.values() if (one := target.processes) is not None}
        suspects = {one for target in (alone or {}).values() if (one := target.processes) is not None}
        self._to_close = self._known | suspects
        self._paces = {one: Pace(clock, one.most) for one in self._known if one.most is not None}
        self._inside: Counter[Processes] = Counter()
        """How many attempts are in a process, or wait for one."""

    def room(self) -> Room:
        """To be called before each claim."""
        for pace in self._paces.values():
            pace.measure()
        isolated = [self._room(one, pace) for one, pace in self._paces.items()]
        commands = [one.starts.room for one in self._known if one.starts.what == COMMANDS]
        bound = min((room for room in commands if room is not None), default=None)
        return Room(sum(isolated) if isolated else None, bound) if isolated or bound is not None else UNBOUNDED

    def _room(self, processes: Processes, pace: Pace) -> int:
        """For how many more there is a process, or soon will be; fewer if no process can be started."""
        assert processes.most is not None
        room, to_start = processes.most + pace.ahead - self._inside[processes], processes.starts.room
        return room if to_start is None else min(room, processes.at_hand + to_start)

    @property
    def trouble(self) -> dict[str, str]:
        """Why processes cannot be started, by what they are for; empty if they can."""
        known = [one.starts for one in self._known]
        return {starts.what: starts.why.partition("\n")[0][:MOST_WORDS] for starts in known if starts.why}

    def began(self, target: Executor) -> None:
        if target.processes in self._paces:
            self._inside[target.processes] += 1

    def ended(self, target: Executor) -> None:
        if target.processes in self._paces:
            self._inside[target.processes] -= 1
            self._paces[target.processes].ended += 1

    async def close(self) -> None:
        """Ends the idle processes of all pools in order; takes at most as long as their atexit handlers may."""
        await asyncio.gather(*(one.close() for one in self._to_close))

    def give_up(self) -> None:
        """Gives back the attempts that wait for a process."""
        for one in self._known:
            one.give_up()
