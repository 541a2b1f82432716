"""What a chaos run measures: how soon, how often, and how much of the time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from rota.domain.instant import MICROSECONDS
from tests.chaos.check import Story, charged_to_chaos, is_timeout
from tests.chaos.designs import DESIGNS, Design
from tests.chaos.jobs import TIMEOUT_S
from tests.chaos.storm import Fault
from tests.kill.check import entries
from tests.kill.crew import Death
from tests.kill.evidence import Attempt
from tests.kill.journal import Word

AFTERMATH_US = 200_000
OF_SUPERVISORS = frozenset({Fault.SUPERVISOR, Fault.BOTH, Fault.TWICE, Fault.STARTING})


class Spread(msgspec.Struct, frozen=True):
    """Some durations in seconds."""

    count: int = 0
    p50: float = 0.0
    p99: float = 0.0
    most: float = 0.0

    def __str__(self) -> str:
        return f"p50 {self.p50:.3f} s, p99 {self.p99:.3f} s, max {self.most:.3f} s ({self.count})"


class Rate(msgspec.Struct, frozen=True):
    """So many of so many."""

    good: int
    all: int

    @property
    def share(self) -> float:
        return self.good / self.all if self.all else 0.0

    def __str__(self) -> str:
        return f"{100 * self.share:.3f} % ({self.good} of {self.all})"


def spread(durations: Iterable[float]) -> Spread:
    found = sorted(max(0.0, duration) for duration in durations)
    if not found:
        return Spread()
    rank = [found[max(0, math.ceil(part * len(found)) - 1)] for part in (0.5, 0.99)]
    return Spread(len(found), *(round(value, 3) for value in (*rank, found[-1])))


def success(seen: Story) -> tuple[Rate, int]:
    """Of what may succeed, what did; and how many we killed three times ourselves, which are left out."""
    ours = charged_to_chaos(seen)
    may = [one.id for one in seen.database.executions if DESIGNS[one.job] is Design.SUCCEEDS and one.id not in ours]
    good = [id for id in may if (history := seen.database.attempts.get(id)) and history[-1].status == "success"]
    return Rate(len(good), len(may)), len(ours)


def availability(seen: Story, begun_at: int, ended_at: int) -> tuple[Rate, Rate]:
    """The seconds in which an enqueue was accepted and an attempt started: of all, and of those in no blackout."""
    accepted, started = ({at // MICROSECONDS for at in times} for times in _served_at(seen))
    seconds = set(range(begun_at // MICROSECONDS + 1, ended_at // MICROSECONDS))
    dark = {
        second
        for begun, ended in _blackouts(seen)
        for second in range(begun // MICROSECONDS, ended // MICROSECONDS + 1)
    }
    served = seconds & accepted & started
    return Rate(len(served), len(seconds)), Rate(len(served - dark), len(seconds - dark))


def recoveries(seen: Story) -> Spread:
    """From a blow that killed everybody at once until an enqueue was accepted and an attempt had started again."""
    return spread((ended - begun) / MICROSECONDS for begun, ended in _blackouts(seen))


def _blackouts(seen: Story) -> list[tuple[int, int]]:
    accepted, started = _served_at(seen)
    found = []
    for at in seen.blackouts:
        # What was on its way to the disk when the blow fell is no sign of life.
        firsts = [[one for one in times if one > at + AFTERMATH_US] for times in (accepted, started)]
        if all(firsts):
            found.append((at, max(map(min, firsts))))
    return found


def _served_at(seen: Story) -> tuple[list[int], list[int]]:
    """When calls were accepted, and when attempts started."""
    accepted = [entry.at for entry in entries(seen) if entry.id and entry.word is Word.ENQUEUE]
    attempts = [one for history in seen.database.attempts.values() for one in history if one.pid is not None]
    return accepted, [attempt.started_at for attempt in attempts]


def restarts(seen: Story) -> Spread:
    """From the kill of a supervisor to the next start of what its children ran, if not all were killed meanwhile."""
    found = []
    for death, _, after in _losses(seen):
        if death.kind not in OF_SUPERVISORS or after is None:
            continue
        if not any(death.at <= at <= after.started_at for at in seen.blackouts):
            found.append((after.started_at - death.at) / MICROSECONDS)
    return spread(found)


def notices(seen: Story) -> Spread:
    """From the kill of a worker process to the recorded end of what it ran, if its supervisor was there to notice."""
    losses = [(death, lost) for death, lost, _ in _losses(seen) if death.kind == Fault.CHILD]
    gone: dict[int | None, list[int]] = defaultdict(list)
    for death in seen.deaths:
        gone[death.pid].append(death.at)
    for pause in seen.pauses:
        gone[pause.supervisor].append(pause.begun_at)
    return spread(
        (lost.finished_at - death.at) / MICROSECONDS
        for death, lost in losses
        if not any(death.at <= at <= lost.finished_at for at in gone[death.parent])
    )


def tellings(seen: Story, since: Word) -> Spread:
    """From the call that cancels, or its answer, until the running body acts on it, if its worker was not stopped."""
    asked: dict[str, int] = {}
    for entry in entries(seen):
        if entry.word is since and entry.id is not None:
            asked[entry.id] = entry.at  # A client that was killed while it asked has a successor, which asks again.
    attempts = {(one.id, one.fence): one for history in seen.database.attempts.values() for one in history}
    found = []
    blame = seen.blame
    for recorded in seen.effects:
        effect = recorded.effect
        attempt = attempts.get((effect.id, effect.fence))
        at = asked.get(effect.id)
        if effect.kind != "told" or at is None or attempt is None or blame.was_paused(attempt):
            continue
        # An attempt that started after the call began got the request when it started.
        found.append((recorded.at - max(at, attempt.started_at)) / MICROSECONDS)
    return spread(found)


def overshoots(seen: Story) -> Spread:
    """How much longer than its time an attempt took that overran it; waiting for a process is no part of its time."""
    begun: dict[tuple[str, int], int] = {}
    for recorded in seen.effects:
        if recorded.effect.kind == "start":
            begun[recorded.effect.id, recorded.effect.fence] = recorded.at
    waits = {one.id for one in seen.database.executions if one.job == "overrun_isolated"}
    found = []
    blame = seen.blame
    for id, history in seen.database.attempts.items():
        for attempt in history:
            if is_timeout(attempt) and not blame.was_paused(attempt):
                since = begun.get((id, attempt.fence)) if id in waits or _was_suspected(attempt, history) else None
                took = attempt.finished_at - (since or attempt.started_at)
                found.append(took / MICROSECONDS - TIMEOUT_S)
    return spread(found)


def _was_suspected(attempt: Attempt, history: list[Attempt]) -> bool:
    return any(one.reason == "suspected" and one.fence < attempt.fence for one in history)


def _losses(seen: Story) -> list[tuple[Death, Attempt, Attempt | None]]:
    """Attempts that were lost with their worker, which we had killed, and what was started in their place."""
    deaths: dict[int, list[Death]] = defaultdict(list)
    for death in seen.deaths:
        if death.worker == death.pid:
            deaths[death.pid].append(death)
    found: list[tuple[Death, Attempt, Attempt | None]] = []
    for history in seen.database.attempts.values():
        for place, attempt in enumerate(history):
            blows = [one for one in deaths[attempt.pid or 0] if attempt.started_at <= one.at <= attempt.finished_at]
            if attempt.status == "lost" and blows:
                after = history[place + 1] if place + 1 < len(history) else None
                found.append((blows[0], attempt, after if after is not None and after.pid is not None else None))
    return found
