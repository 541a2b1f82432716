"""What a worker runs in other processes than its own, and for how much more of that it should claim.

Jobs of a pool are bounded by its processes. Commands are bounded by nothing but the worker's slots, until one cannot be
started: then, as with a pool that cannot start processes, none is claimed for a while, and then one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rota.clock import Clock
from rota.domain.requirement import COMMANDS, UNBOUNDED, Room
from rota.engine.pace import Pace
from rota.executors.command import CommandExecutor
from rota.executors.function import FunctionTarget
from rota.executors.port import Executor
from rota.executors.process import Pool, ProcessExecutor
from rota.executors.starts import Starts

MOST_WORDS = 200


class Elsewhere:
    """The pools of a worker, and its commands."""

    def __init__(self, targets: Mapping[str, FunctionTarget | Executor], clock: Clock) -> None:
        pools = {target.pool for target in targets.values() if isinstance(target, ProcessExecutor)}
        self._pools: dict[Pool, Pace] = {pool: Pace(clock, pool.most) for pool in pools}
        self._inside: Counter[Pool] = Counter()
        """How many attempts are in a process of a pool, or wait for one."""
        self._commands = Starts(COMMANDS, clock.monotonic)
        for target in targets.values():
            if isinstance(target, CommandExecutor):
                target.starts = self._commands

    def room(self) -> Room:
        """To be called before each claim."""
        commands = self._commands.room
        if not self._pools:
            return UNBOUNDED if commands is None else Room(None, commands)
        for pace in self._pools.values():
            pace.measure()
        return Room(sum(self._room(pool, pace) for pool, pace in self._pools.items()), commands)

    def _room(self, pool: Pool, pace: Pace) -> int:
        """For how many more there is a process, or will be within a blink; or could be, if that is not known."""
        room, to_start = pool.most + pace.ahead - self._inside[pool], pool.starts.room
        return room if to_start is None else min(room, pool.at_hand + to_start)

    @property
    def trouble(self) -> dict[str, str]:
        """Why processes cannot be started, by what they are for; empty if they can."""
        known = [self._commands, *(pool.starts for pool in self._pools)]
        return {starts.what: starts.why.partition("\n")[0][:MOST_WORDS] for starts in known if starts.why}

    def began(self, target: Executor) -> None:
        if isinstance(target, ProcessExecutor) and target.pool in self._pools:
            self._inside[target.pool] += 1

    def ended(self, target: Executor) -> None:
        if isinstance(target, ProcessExecutor) and target.pool in self._pools:
            self._inside[target.pool] -= 1
            self._pools[target.pool].ended += 1

    def give_up(self) -> None:
        """Nothing that waits for a process gets one any more."""
        for pool in self._pools:
            pool.give_up()
