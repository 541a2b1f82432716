"""Which of our own blows explain what became of an attempt."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence

from tests.kill.crew import Death, Pause
from tests.kill.effects import Recorded
from tests.kill.evidence import Attempt

EARLY_US = 2_000_000
"""A claim may be committed for a worker that has just died; and a blow is noted before it falls."""
LATE_US = 1_000_000


class Blame:
    """Deaths and pauses by process."""

    def __init__(self, deaths: Sequence[Death], pauses: Sequence[Pause], effects: Sequence[Recorded]) -> None:
        self._deaths: dict[int, list[int]] = defaultdict(list)
        for death in sorted(deaths, key=lambda one: one.at):
            for pid in {death.pid, death.worker or death.pid}:
                self._deaths[pid].append(death.at)
        self._pauses: dict[int, list[Pause]] = defaultdict(list)
        for pause in pauses:
            for pid in pause.workers:
                self._pauses[pid].append(pause)
        self._pids: dict[tuple[str, int], set[int]] = defaultdict(set)
        for recorded in effects:
            self._pids[recorded.effect.id, recorded.effect.fence].add(recorded.effect.pid)

    def explains(self, attempt: Attempt) -> bool:
        """Whether we killed or stopped its worker, its own process, or something else of that worker meanwhile."""
        pids = {attempt.pid or 0} | self._pids.get((attempt.id, attempt.fence), set())
        since, until = attempt.started_at - EARLY_US, attempt.finished_at + LATE_US
        return any(self._fell(pid, since, until) for pid in pids) or self.was_paused(attempt)

    def was_paused(self, attempt: Attempt) -> bool:
        pauses = self._pauses.get(attempt.pid or 0, [])
        return any(pause.begun_at <= attempt.finished_at and pause.ended_at >= attempt.started_at for pause in pauses)

    def _fell(self, pid: int, since: int, until: int) -> bool:
        blows = self._deaths.get(pid, [])
        return bisect_left(blows, since) < bisect_right(blows, until)
