"""What is left of workers that were killed together with their stages: nobody waits for it, and nobody would end it.

Whoever starts or stops here, or has lost a worker, ends it, so that it does not go on beside the next attempt. A single
look is not to be trusted: what forks and ends all the time may be between two processes, the stage may be killed a
moment after its worker, and another who looked may be killed before it had ended what it found. So there are several
looks in a row, a second later some more, and after that one now and then.
"""

from __future__ import annotations

import asyncio
import logging
import threading

from rota.engine.loop import Loop
from rota.executors import tree

log = logging.getLogger("rota.engine")

QUIET = 10
"""So many looks in a row must find nothing, when there is reason to look."""
AT_ONCE = 3
"""The same, while others wait for it."""
AGAIN_S = 1.0
EVERY_S = 30.0
MOST_SWEEPS = 20

_bare: set[tuple[int, int]] = set()
_turn = threading.Lock()


class Strays:
    """Looks for them now and then, and more closely soon after a worker was killed."""

    def __init__(self) -> None:
        self.loop = Loop("strays", self.step)
        self._is_warned = False

    def look_soon(self) -> None:
        self._is_warned = True
        asyncio.get_running_loop().call_later(AGAIN_S, self.loop.wake.wake)

    async def step(self) -> float:
        quiet, self._is_warned = (QUIET if self._is_warned else 1), False
        if not await end_strays(quiet):
            return EVERY_S
        self._is_warned = True
        return AGAIN_S


async def end_strays(quiet: int = QUIET) -> int:
    """Ends them, and returns how many there were."""
    count = await asyncio.to_thread(_sweep, quiet)
    if count:
        log.warning("ended %d processes that commands of a killed worker had left behind", count)
    return count


def _sweep(quiet: int) -> int:
    """Until there is nothing left to end, within reason."""
    total = 0
    with _turn:
        for _ in range(MOST_SWEEPS):
            count = tree.kill(lambda: tree.strays(_bare), quiet)
            if not count:
                break
            total, quiet = total + count, QUIET
    return total
