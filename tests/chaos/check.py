"""Compares the witnesses of a chaos run: the rules of the kill test, and those for what only happens here."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import cast

from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import CRASH_CAP
from tests.chaos.blame import Blame
from tests.chaos.designs import DESIGNS, PERIODS_S, Design
from tests.chaos.jobs import DOOMED
from tests.kill import check
from tests.kill.check import Witnesses, entries, is_crash
from tests.kill.crew import Death, Pause
from tests.kill.evidence import Attempt, Tick
from tests.kill.jobs import Boom
from tests.kill.journal import Word

OF_JOBS = {f"{Boom.__module__}.{Boom.__qualname__}", "Timeout", "ResultError", "WorkerLost"}
"""Errors that the jobs have by design, or with the death of a whole worker."""
OF_DEATHS = {"Signal", "Crashed", "ProcessError", "NotStarted", "SpawnerLost"}
"""Errors that only a killed process explains."""
STOP_S = 5.0
"""So long after the recorded end of an attempt that was stopped its last effect may come in."""


class Story(Witnesses, frozen=True, kw_only=True):
    """What the witnesses say, and what was done to the processes meanwhile."""

    deaths: list[Death] = []
    pauses: list[Pause] = []
    blackouts: list[int] = []
    """When everybody was killed at once."""

    @property
    def blame(self) -> Blame:
        return Blame(self.deaths, self.pauses, self.effects)


def problems(seen: Story) -> list[str]:
    return check.found(seen, RULES)


def counted(problems: Sequence[str]) -> dict[str, int]:
    """How often each rule was broken, those that hold included."""
    times = Counter(problem.split(":")[0] for problem in problems)
    return {rule.__name__: times[rule.__name__] for rule in RULES}


def outcomes(seen: Story) -> Iterator[str]:
    """Executions end as their jobs are meant to; whatever else happened to an attempt was our doing."""
    blame = seen.blame
    for execution in seen.database.executions:
        design = DESIGNS[execution.job]
        for attempt in seen.database.attempts.get(execution.id, []):
            what = f"{execution.job} {execution.id} fence {attempt.fence}"
            error = None if attempt.error is None else json.loads(attempt.error)["type"]
            if error is not None and error not in OF_JOBS | OF_DEATHS:
                yield f"{what} failed in a way of its own: {(attempt.error or '')[:300]}"
            is_ours = is_crash(attempt) or error in OF_DEATHS
            if is_ours and design is not Design.POISON and not blame.explains(attempt):
                yield f"{what} died without an injected kill: {attempt.status} {attempt.reason} {attempt.error}"
            if attempt.final and not _is_right_end(design, attempt):
                yield f"{what}, which {design}, ended as {attempt}"


def refused(seen: Story) -> Iterator[str]:
    """What no database can keep was refused, and left nothing behind."""
    stored = {execution.ticket for execution in seen.database.executions}
    for entry in entries(seen):
        if entry.word is Word.TOO_MUCH and entry.ticket in stored:
            yield f"{entry.ticket} should have been refused and is stored"


def cancelled(seen: Story) -> Iterator[str]:
    """After a cancel was accepted nothing starts, and the end is a cancel or a success that came first."""
    for entry in entries(seen):
        if entry.word is Word.CANCELLED and entry.id is not None:
            history = seen.database.attempts.get(entry.id, [])
            for attempt in history:
                if attempt.pid is not None and attempt.started_at > entry.at:
                    yield f"{entry.id} fence {attempt.fence} started after its cancel was accepted"
            if history and history[-1].finished_at > entry.at and history[-1].status not in ("cancelled", "success"):
                yield f"{entry.id} was cancelled, and ended later as {history[-1].status} ({history[-1].reason})"


def stopped(seen: Story) -> Iterator[str]:
    """An attempt that was stopped does nothing more, unless its worker could not be reached."""
    blame = seen.blame
    last: dict[tuple[str, int], int] = defaultdict(int)
    for recorded in seen.effects:
        key = (recorded.effect.id, recorded.effect.fence)
        last[key] = max(last[key], recorded.at)
    for history in seen.database.attempts.values():
        for attempt in history:
            late_s = (last[attempt.id, attempt.fence] - attempt.finished_at) / MICROSECONDS
            if late_s > STOP_S and is_stopped(attempt) and not blame.was_paused(attempt):
                yield f"{attempt.id} fence {attempt.fence} was stopped, and acted {late_s:.1f} s later"


def ticks(seen: Story) -> Iterator[str]:
    """Every instant of every schedule is in the ledger once, and has an execution if, and only if, that says so."""
    ledger: dict[str, list[Tick]] = defaultdict(list)
    for tick in seen.database.ticks:
        ledger[tick.schedule].append(tick)
    for name, period_s in PERIODS_S.items():
        yield from _gaps(name, ledger[name], period_s * MICROSECONDS)
    told = Counter((one.schedule, one.at, one.execution) for one in seen.database.ticks if one.execution)
    begun = Counter((one.schedule, one.tick or 0, one.id) for one in seen.database.executions if one.schedule)
    for key in (told - begun) + (begun - told):
        yield f"the ledger and the executions do not agree on {key}"
    for (schedule, at), times in Counter((key[0], key[1]) for key in begun.elements()).items():
        if times > 1:
            yield f"tick {at} of {schedule} began {times} executions"
    for execution in seen.database.executions:
        for attempt in seen.database.attempts.get(execution.id, []):
            if execution.tick is not None and attempt.started_at < execution.tick:
                yield f"{execution.id} started before its tick"


def checkpoints(seen: Story) -> Iterator[str]:
    """A later attempt begins no earlier than the one before, and skips nothing that was not done."""
    first: dict[str, dict[int, int]] = defaultdict(dict)
    done: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for recorded in seen.effects:
        effect = recorded.effect
        kind, _, number = effect.kind.partition(" ")
        if kind == "from":
            first[effect.id][effect.fence] = int(number)
        elif kind == "step":
            done[effect.id][effect.fence] = max(done[effect.id][effect.fence], int(number) + 1)
    for id, starts in first.items():
        for before, after in pairwise(sorted(starts)):
            if starts[after] < starts[before]:
                yield f"{id} fence {after} began at {starts[after]}, and fence {before} at {starts[before]}"
        for fence, start in starts.items():
            if start > max([0, *(most for other, most in done[id].items() if other < fence)]):
                yield f"{id} fence {fence} began at {start}, which no earlier attempt had reached"


def is_stopped(attempt: Attempt) -> bool:
    """Whether it was ended from outside, by its time or by a cancel."""
    if attempt.pid is None:
        return False
    return attempt.status == "cancelled" or is_timeout(attempt)


def is_timeout(attempt: Attempt) -> bool:
    return attempt.error is not None and json.loads(attempt.error)["type"] == "Timeout"


def charged_to_chaos(seen: Story) -> set[str]:
    """Executions that were meant to succeed, and that we killed three times when they could be blamed alone."""
    blame = seen.blame
    return {
        execution.id
        for execution in seen.database.executions
        if DESIGNS[execution.job] is Design.SUCCEEDS
        and (history := seen.database.attempts.get(execution.id, []))
        and history[-1].reason == "crash_loop"
        and all(blame.explains(attempt) for attempt in history if is_crash(attempt))
    }


def _is_right_end(design: Design, end: Attempt) -> bool:
    match design, end.status, end.reason:
        case _, "failed", "crash_loop":
            return end.crashes == CRASH_CAP
        case ((Design.SUCCEEDS | Design.CANCELLED), "success", "completed"):
            return end.result == str(end.fence)
        case Design.EXHAUSTS, "failed", "retries_exhausted":
            return end.attempts == DOOMED.attempts
        case Design.BAD_RESULT, "failed", "bad_result":
            return True
        case Design.RAISES, "failed", "error":
            return True
        case Design.CANCELLED, "cancelled", "cancelled":
            return True
        case _:
            return False


def _gaps(name: str, ledger: list[Tick], period: int) -> Iterator[str]:
    if not ledger:
        yield f"schedule {name} has no ticks"
    for tick in ledger:
        if tick.at % period or tick.until != tick.at + (tick.count - 1) * period:
            yield f"schedule {name} has an entry that no clock has: {tick}"
    for before, after in pairwise(ledger):
        if after.at != before.until + period:
            yield f"schedule {name} goes from {before.until} to {after.at}"


RULES = cast(
    "Sequence[Callable[[Story], Iterator[str]]]",
    (*check.RULES, outcomes, refused, cancelled, stopped, ticks, checkpoints),
)
