"""Enqueueing: what was accepted is there, once, and nothing else is."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rota.domain.instant import MICROSECONDS
from rota.domain.status import PENDING, TERMINAL, Status
from rota.domain.unique import OnConflict, Scope, Unique
from rota.ops.enqueue import DEPTH_AGE_S
from rota.ops.submission import Accepted, Header, Item
from tests.simulation.history import History, Operation, Submission
from tests.simulation.ledger import Ledger, changes, replay

ENQUEUES = ("enqueue", "replay", "repeat")


def accepted_is_stored_once(history: History) -> Iterator[str]:
    stored = Counter(row["id"] for row in history.tables["execution"])
    for submission in history.submissions:
        for answer in submission.accepted.values():
            if stored[answer] != 1:
                yield f"{answer} was accepted and is stored {stored[answer]} times"
    for order in history.orders:
        if order.verb in ("replay", "repeat") and order.answer:
            for id in order.new_ids if order.verb == "repeat" else order.answer:
                if stored[id] != 1:
                    yield f"{id}, a {order.verb}, was accepted and is stored {stored[id]} times"


def every_stored_execution_was_requested(history: History) -> Iterator[str]:
    possible = {item.id for submission in history.submissions for item in _possible(submission)}
    for order in history.orders:
        if any(one.told in ("accepted", "unsure") for one in order.tries):
            possible.update(order.new_ids)
    for row in history.tables["execution"]:
        if row["id"] not in possible and row["run"] is None and row["event"] is None:
            yield f"{row['id']} ({row['job']}) is stored, but no client got its id or may expect it"


def _possible(submission: Submission) -> Iterator[Item]:
    unsure = any(one.told == "unsure" for one in submission.tries)
    for item in submission.items:
        if unsure or submission.accepted.get(item.id) == item.id:
            yield item


def a_bulk_is_all_or_nothing(history: History) -> Iterator[str]:
    stored = {row["id"] for row in history.tables["execution"]}
    for submission in history.submissions:
        there = [item.id for item in submission.items if item.id in stored]
        if submission.header.unique is None and len(there) not in (0, len(submission.items)):
            yield f"of {len(submission.items)} executions accepted together, only {there} are stored"


def a_key_names_one_execution(history: History) -> Iterator[str]:
    holders: dict[tuple[str, str], dict[str, Any]] = {}
    for _, change in changes(history, "execution", "+"):
        key = (change.row["job"], change.row["key"])
        if change.row["key"] is None:
            continue
        if key in holders:
            yield f"key {key} has two executions: {holders[key]['id']} and {change.row['id']}"
        holders[key] = change.row
    for submission in history.submissions:
        holder = holders.get((submission.header.job, submission.header.key or ""))
        for item in submission.items:
            answer = submission.accepted.get(item.id)
            if submission.header.key is None or answer is None:
                continue
            if holder is None or answer != holder["id"]:
                yield f"key {submission.header.key!r} was answered with {answer}, not with its execution"
            elif holder["arguments"] != item.arguments:
                yield f"key {submission.header.key!r} was accepted with other arguments: {item.arguments}"


def unique_scopes_hold(history: History) -> Iterator[str]:
    taken: dict[tuple[str, Scope, str], tuple[str, int]] = {}
    for operation, before, after in replay(history):
        if operation.name == "enqueue" and operation.args[0].unique is not None:
            yield from _judge_unique(taken, operation, before, after)


def _judge_unique(
    taken: dict[tuple[str, Scope, str], tuple[str, int]], operation: Operation, before: Ledger, after: Ledger
) -> Iterator[str]:
    header: Header = operation.args[0]
    unique = header.unique
    assert unique is not None
    answers: list[Accepted] = operation.result
    for item, answer in zip(operation.args[1], answers, strict=True):
        key = unique.key or hashlib.sha256(item.arguments.encode()).hexdigest()
        place = (header.job, unique.kind(), key)
        holder, taken_at = taken.get(place, ("", 0))
        # One made by the same operation was not there before it.
        status = before.status(holder) or (Status.QUEUED if holder in after["execution"] else None)
        keeps_out = bool(holder) and _keeps_out(unique, status, taken_at, operation.now)
        if answer.created and holder == item.id:
            continue  # The repeat of a call that had landed.
        if answer.created:
            if keeps_out:
                yield from _judge_newcomer(unique, holder, status, after)
            taken[place] = (item.id, operation.now)
        elif not keeps_out or answer.id != holder:
            yield f"{item.id} was answered with {answer.id}, which does not hold {place}"
        elif unique.on_conflict == OnConflict.DEBOUNCE:
            yield from _judge_debounce(header, holder, operation, before, after)
        elif unique.on_conflict != OnConflict.RETURN:
            yield f"{item.id} was answered with the holder of {place} although it asked to {unique.on_conflict}"


def _keeps_out(unique: Unique, status: Status | None, taken_at: int, now: int) -> bool:
    match unique.kind():
        case Scope.QUEUED:
            return status in PENDING
        case Scope.ACTIVE:
            return status is not None and status not in TERMINAL
        case Scope.WINDOW:
            return now < taken_at + round(unique.window_s() * MICROSECONDS)
        case Scope.FOREVER:
            return True


def _judge_newcomer(unique: Unique, holder: str, status: Status | None, after: Ledger) -> Iterator[str]:
    """A second execution in spite of a holder is right only if the holder had to make room or had begun."""
    match OnConflict(unique.on_conflict):
        case OnConflict.REPLACE:
            running = after["running"].get(holder)
            is_asked_to_stop = running is not None and running["cancel_at"] is not None
            if not is_asked_to_stop and holder not in after.ended:
                yield f"{holder} was replaced and keeps running"
        case OnConflict.DEBOUNCE:
            if status in PENDING:
                yield f"{holder} could have been pushed back, but got company"
        case OnConflict.RETURN | OnConflict.REJECT:
            yield f"{holder} ({status}) holds the unique key {unique}, but another was let in"


def _judge_debounce(header: Header, holder: str, operation: Operation, before: Ledger, after: Ledger) -> Iterator[str]:
    """The start moves back, never forward: a retry that is further away stays there.

    A holder of the same operation starts at that time already.
    """
    if holder not in before["execution"]:
        return
    run_at = operation.now + round(header.delay_s * MICROSECONDS)
    if header.at is not None:
        run_at = max(header.at, operation.now)
    if holder in before["scheduled"]:
        run_at = max(run_at, before["scheduled"][holder]["run_at"])
    row = after["scheduled"].get(holder)
    if row is None or row["run_at"] != run_at:
        yield f"{holder} was to be pushed back to {run_at}, but is {row or after.status(holder)}"


def depth_limits_hold(history: History) -> Iterator[str]:
    """Enqueueing may overshoot by what came from elsewhere since the depth was last counted, and no more."""
    arrivals: dict[str, list[tuple[Operation, int]]] = {queue: [] for queue in history.depths}
    for operation, _, after in replay(history):
        arrived = Counter(
            after["execution"][change.row["id"]]["queue"]
            for change in operation.changes
            if change.table == "ready" and change.kind == "+"
        )
        for queue, most in history.depths.items():
            if arrived[queue] and operation.name in ENQUEUES:
                earlier = [entry for entry in arrivals[queue] if _is_from_elsewhere(history, operation, entry[0])]
                recent = sum(count for other, count in earlier if _is_recent(operation, other))
                depth = after.ready_in(queue)
                if depth > most + recent:
                    yield f"{queue} has {depth} of {most} queued after an enqueue, {recent} of them from elsewhere"
            arrivals[queue].append((operation, arrived[queue]))


def _is_from_elsewhere(history: History, operation: Operation, other: Operation) -> bool:
    """A caller counts its own executions: on SQLite all callers share one count, on PostgreSQL each has its own."""
    return other.name not in ENQUEUES or (history.database == "postgres" and other.caller != operation.caller)


def _is_recent(operation: Operation, other: Operation) -> bool:
    return operation.at - other.at <= DEPTH_AGE_S or 0 <= operation.now - other.now <= DEPTH_AGE_S * MICROSECONDS
