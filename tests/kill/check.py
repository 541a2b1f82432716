"""Compares the three witnesses. Every broken promise is one line of text; none is tolerated."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec

from rota.domain.lifecycle import CRASH_CAP
from tests.kill.bodies import CHARGE
from tests.kill.effects import Answer, Effect, Recorded
from tests.kill.evidence import Attempt, Evidence
from tests.kill.jobs import DOOMED_ATTEMPTS, PATIENT, Boom
from tests.kill.journal import Entry, unanswered
from tests.kill.receiver import Ledger

OUR_ERRORS = {f"{Boom.__module__}.{Boom.__qualname__}", "WorkerLost"}
LOSSES = {"WorkerLost", "Crashed", "SpawnerLost"}


class Witnesses(msgspec.Struct, frozen=True):
    """What the enqueuers, the receiver and the database say. One list of entries for each enqueuer."""

    journals: Sequence[list[Entry]]
    effects: list[Recorded]
    database: Evidence
    elsewhere: frozenset[str] = frozenset()
    """The jobs whose bodies run in other processes than the worker."""


W = TypeVar("W", bound=Witnesses)


def problems(witnesses: Witnesses) -> list[str]:
    """Every contradiction between the witnesses, and every broken rule within one of them."""
    return found(witnesses, (*RULES, outcomes))


def found(witnesses: W, rules: Sequence[Callable[[W], Iterator[str]]]) -> list[str]:
    """What breaks one of the rules, with the rule's name in front."""
    return [f"{rule.__name__}: {problem}" for rule in rules for problem in rule(witnesses)]


def accepted(seen: Witnesses) -> Iterator[str]:
    """An accepted execution is stored, under the id that the caller got."""
    stored = {execution.id: execution.ticket for execution in seen.database.executions}
    for entry in entries(seen):
        if entry.id is not None and stored.get(entry.id) != entry.ticket:
            yield f"{entry.ticket} was accepted as {entry.id}, where there is {stored.get(entry.id)}"
    for journal in seen.journals:
        for entry in unanswered(journal):
            if entry.keyed:
                yield f"{entry.ticket} has a key and never got an answer"


def stored(seen: Witnesses) -> Iterator[str]:
    """What is stored was asked for, and is stored once."""
    asked = {entry.ticket for entry in entries(seen)}
    tickets = Counter(execution.ticket for execution in seen.database.executions if execution.schedule is None)
    for ticket, times in tickets.items():
        if times > 1:
            yield f"{ticket} is stored {times} times"
        if ticket not in asked:
            yield f"{ticket} is stored and is in no journal"


def at_rest(seen: Witnesses) -> Iterator[str]:
    database = seen.database
    if any(database.pending.values()):
        yield f"not everything came to an end: {database.pending}"
    if database.live_workers:
        yield f"{database.live_workers} workers neither left nor were declared dead"
    if database.integrity != "ok":
        yield f"integrity check: {database.integrity}"


def ends(seen: Witnesses) -> Iterator[str]:
    """One terminal state each, and nothing after it."""
    database = seen.database
    known = {execution.id for execution in database.executions}
    for id in database.attempts.keys() - known:
        yield f"{id} has a history and does not exist"
    for id in known:
        ends = [attempt for attempt in database.attempts.get(id, []) if attempt.final]
        if len(ends) != 1:
            yield f"{id} has {len(ends)} ends"
        elif ends[0] is not database.attempts[id][-1]:
            yield f"{id} ended at fence {ends[0].fence} and was started again"
    failed = {id for id, history in database.attempts.items() if history[-1].status == "failed"}
    if failed != database.dead:
        yield f"{len(failed ^ database.dead)} dead letters do not match the failed executions"


def history(seen: Witnesses) -> Iterator[str]:
    """Every claim raised the fence by one, and no two attempts held the execution at the same time."""
    for id, history in seen.database.attempts.items():
        fences = [attempt.fence for attempt in history]
        if fences != list(range(1, len(history) + 1)):
            yield f"{id} has the fences {fences}"
        for attempt in history:
            if attempt.finished_at < attempt.started_at:
                yield f"{id} ended fence {attempt.fence} before it started"
        for before, after in pairwise(history):
            if after.started_at < before.finished_at:
                yield f"{id} fence {after.fence} started before fence {before.fence} had ended"
        crashes = sum(is_crash(attempt) for attempt in history)
        if history[-1].crashes not in (crashes, crashes + _may_hide_a_crash(history[-1])):
            yield f"{id} counts {history[-1].crashes} crashes and had another number"


def outcomes(seen: Witnesses) -> Iterator[str]:
    """Executions end as their jobs do, unless their workers were killed once too often."""
    for execution in seen.database.executions:
        for attempt in seen.database.attempts.get(execution.id, []):
            if attempt.error is not None and json.loads(attempt.error)["type"] not in OUR_ERRORS:
                yield f"{execution.job} {execution.id} failed in a way of its own: {attempt.error[:300]}"
            if attempt.final and not _is_right_end(execution.job, attempt):
                yield f"{execution.job} {execution.id} ended as {attempt}"


def _is_right_end(job: str, end: Attempt) -> bool:
    match end.status, end.reason:
        case "success", "completed":
            return job != "doomed" and end.result == str(end.fence) and end.attempts <= PATIENT.attempts
        case "failed", "crash_loop":
            return end.crashes == CRASH_CAP
        case "failed", "retries_exhausted":
            return job == "doomed" and end.attempts == DOOMED_ATTEMPTS
        case _:
            return False


def receiver(seen: Witnesses) -> Iterator[str]:
    """The receiver's answers follow from what it had heard before."""
    ledger = Ledger()
    for recorded in seen.effects:
        right = ledger.decide(recorded.effect)
        if right is not recorded.answer:
            yield f"the receiver answered {recorded.answer} instead of {right} to {recorded.effect}"


def effects(seen: Witnesses) -> Iterator[str]:
    """Whatever was done outside was done once by an attempt that the history knows, in the process it names."""
    attempts = {(one.id, one.fence): one for history in seen.database.attempts.values() for one in history}
    times = Counter((one.effect.id, one.effect.fence, one.effect.kind) for one in seen.effects)
    id_jobs = {execution.id: execution.job for execution in seen.database.executions}
    for (id, fence, kind), count in times.items():
        if count > 1:
            yield f"fence {fence} of {id} was started more than once: {count} times {kind}"
    for recorded in seen.effects:
        effect = recorded.effect
        attempt = attempts.get((effect.id, effect.fence))
        if attempt is None:
            yield f"no attempt in the history made {effect}"
        elif attempt.pid != effect.pid and not (id_jobs[effect.id] in seen.elsewhere or _ran_alone(seen, effect)):
            yield f"{effect} was made in another process than the {attempt.pid} that held it"
        elif recorded.at < attempt.started_at:
            yield f"{effect} was made before its attempt started"


def charges(seen: Witnesses) -> Iterator[str]:
    """A fenced effect is carried out exactly once for a success, at most once for a failure."""
    done: dict[str, list[int]] = defaultdict(list)
    reached: dict[str, int] = defaultdict(int)
    for recorded in seen.effects:
        effect = recorded.effect
        reached[effect.id] = max(reached[effect.id], effect.fence)
        if effect.kind == CHARGE and recorded.answer is Answer.DONE:
            done[effect.id].append(effect.fence)
    for id, history in seen.database.attempts.items():
        end = history[-1]
        if len(done[id]) > 1:
            yield f"{id} was charged {len(done[id])} times"
        if end.status == "success" and len(done[id]) != 1:
            yield f"{id} succeeded and was charged {len(done[id])} times"
        if end.status == "success" and reached[id] != end.fence:
            yield f"{id} succeeded at fence {end.fence} and fence {reached[id]} was the last to act"


def unfenced_doubles(seen: Witnesses) -> int:
    """Effects that happened again only because a worker was lost: an execution that failed by itself does not count."""
    times = Counter((one.effect.id, one.effect.kind) for one in seen.effects if not one.effect.fenced)
    failed = {id for id, history in seen.database.attempts.items() if any(_is_failure(one) for one in history)}
    return sum(count - 1 for (id, _), count in times.items() if id not in failed)


def entries(seen: Witnesses) -> Iterator[Entry]:
    for journal in seen.journals:
        yield from journal


def _ran_alone(seen: Witnesses, effect: Effect) -> bool:
    """Whether it may have had a process of its own, because one in which it ran with others had died."""
    history = seen.database.attempts[effect.id]
    return any(one.reason == "suspected" and one.fence < effect.fence for one in history)


def is_crash(attempt: Attempt) -> bool:
    return attempt.reason in ("crashed", "crash_loop")


def _may_hide_a_crash(end: Attempt) -> bool:
    """A cancel was asked for before its process died: a crash that counts, if it ran alone, and shows as a cancel."""
    return end.status == "cancelled" and end.error is not None and json.loads(end.error)["type"] in LOSSES


def _is_failure(attempt: Attempt) -> bool:
    return attempt.status == "failed" and attempt.reason != "crash_loop"


RULES: Sequence[Callable[[Witnesses], Iterator[str]]] = (
    accepted,
    stored,
    at_rest,
    ends,
    history,
    receiver,
    effects,
    charges,
)
"""What holds for every run, whatever its jobs do."""
