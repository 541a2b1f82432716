"""How many executions a worker should claim."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

from rota.clock import Clock
from rota.domain.requirement import COMMANDS, UNBOUNDED, Room
from rota.executors.port import Executor, Processes

HORIZON_S = 0.045
"""How far ahead a worker claims: longer than a transaction takes, so that no slot waits for one."""
MOST_AHEAD = 1200
"""With more, a worker would claim faster than it writes the outcomes, and its long transactions would delay others."""
MOST_PER_CLAIM = 650
"""How many executions one claim may take. A new execution with a high priority waits for the claim in flight."""
ENDS_TO_JUDGE_BY = 50
"""A worker decides before the end of a horizon only after this many ends: fewer do not show its rate."""
GATHER_S = 0.003
"""How long a worker that does not prefetch waits for more free slots."""
MOST_TROUBLE_CHARACTERS = 200


class Pace:
    """How many executions to claim beyond the free slots, from the number of attempts that have ended lately.

    While a claim is on its way the slots of a fast worker run dry, and many small claims cost more than a few large
    ones. So a worker whose attempts are short prefetches as many as it will begin within `HORIZON_S`.
    """

    def __init__(self, clock: Clock, concurrency: int) -> None:
        self._clock = clock
        self._concurrency = concurrency
        self._decided_at = clock.monotonic()
        self._held = 0
        """At least as many executions as the worker had at the last decision. Their ends show nothing in an early
        decision: slow attempts may end together."""
        self.ended = 0
        self.ahead = 0
        """Claims that may wait in this process until a slot is free."""

    @property
    def worthwhile(self) -> int:
        """How many executions a claim should bring while there is plenty of work: half of what the worker may hold if
        it prefetches, nearly all of it otherwise, and at most `MOST_PER_CLAIM`."""
        places = self._concurrency + self.ahead
        return max(1, min(MOST_PER_CLAIM, places // 2 if self.ahead else places * 9 // 10))

    @property
    def gather_s(self) -> float:
        """How long a claim may wait until it is worthwhile."""
        return HORIZON_S / 2 if self.ahead else GATHER_S

    def measure(self, free: int) -> None:
        """To be called before each claim, with the number of executions that the worker could take.

        Decides once per horizon, or earlier when as many attempts as the worker has places for have begun and ended
        since the last decision: a burst of short jobs would be over before the horizon is. An early decision prefetches
        no more than these attempts, which may be the last short ones.
        """
        now = self._clock.monotonic()
        elapsed_s = now - self._decided_at
        is_early, places = elapsed_s < HORIZON_S, self._concurrency + self.ahead
        turned_over = self.ended - self._held
        if elapsed_s <= 0 or (is_early and turned_over < max(places, ENDS_TO_JUDGE_BY)):
            return
        soon = int(self.ended * HORIZON_S / elapsed_s)
        if is_early:
            soon = min(soon, turned_over)
        self._decided_at, self.ended, self._held = now, 0, places - free
        self.ahead = min(soon, MOST_AHEAD) if soon >= self._concurrency else 0


class ProcessCapacity:
    """For how many more jobs that run in processes of their own a worker should claim.

    A pool bounds its jobs by its number of processes. Commands are bounded by the worker's slots only, until one cannot
    be started: then, as with a pool that cannot start processes, the worker claims none for a while, and then one.
    """

    def __init__(
        self, targets: Mapping[str, Executor], clock: Clock, alone: Mapping[str, Executor] | None = None
    ) -> None:
        """The executors in `alone` are for suspects, which no claim counts."""
        self._known = {one for target in targets.values() if (one := target.processes) is not None}
        suspects = {one for target in (alone or {}).values() if (one := target.processes) is not None}
        self._to_close = self._known | suspects
        self._paces = {one: Pace(clock, one.most) for one in self._known if one.most is not None}
        self._inside: Counter[Processes] = Counter()
        """How many attempts run in a process, or wait for one."""

    def room(self) -> Room:
        """To be called before each claim."""
        for one, pace in self._paces.items():
            pace.measure(self._free(one, pace))
        isolated = [self._room(one, pace) for one, pace in self._paces.items()]
        commands = [one.starts.room for one in self._known if one.starts.what == COMMANDS]
        bound = min((room for room in commands if room is not None), default=None)
        return Room(sum(isolated) if isolated else None, bound) if isolated or bound is not None else UNBOUNDED

    def _room(self, processes: Processes, pace: Pace) -> int:
        """For how many more there is a process, or soon will be; fewer if no process can be started."""
        room, to_start = self._free(processes, pace), processes.starts.room
        return room if to_start is None else min(room, processes.at_hand + to_start)

    def _free(self, processes: Processes, pace: Pace) -> int:
        assert processes.most is not None
        return processes.most + pace.ahead - self._inside[processes]

    @property
    def trouble(self) -> dict[str, str]:
        """Why processes cannot be started, by what they are for; empty if they can."""
        known = [one.starts for one in self._known]
        return {starts.what: starts.why.partition("\n")[0][:MOST_TROUBLE_CHARACTERS] for starts in known if starts.why}

    def began(self, processes: Processes) -> None:
        if processes in self._paces:
            self._inside[processes] += 1

    def ended(self, processes: Processes) -> None:
        if processes in self._paces:
            self._inside[processes] -= 1
            self._paces[processes].ended += 1

    async def close(self) -> None:
        """Ends the idle processes of all pools in order; takes at most as long as their atexit handlers may."""
        await asyncio.gather(*(one.close() for one in self._to_close))

    def give_up(self) -> None:
        """Gives back the attempts that wait for a process."""
        for one in self._known:
            one.give_up()
