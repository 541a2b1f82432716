"""Steps that wait: each ends once, by its event, by its answer, or when its time is over."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rota.domain.status import Status
from rota.domain.workflow.wait import is_wait
from tests.simulation.history import History, Operation, Row
from tests.simulation.invariants.events import wants
from tests.simulation.ledger import Ledger, replay


def every_wait_ends_once(history: History) -> Iterator[str]:
    """And no worker ever gets it."""
    waits = {row["id"]: row["job"] for row in history.tables["execution"] if is_wait(row["job"])}
    ends: dict[str, list[str]] = {id: [] for id in waits}
    for operation in history.operations:
        for change in operation.changes:
            id = str(change.row.get("id"))
            if id in waits and change.table in ("scheduled", "ready", "running"):
                yield f"{operation.name} did {change.kind} {change.table} for {id}, which is {waits[id]}"
            if id in waits and change.table == "finished" and change.kind == "+":
                ends[id].append(f"{change.row['status']} by {operation.name}")
    for id, found in ends.items():
        if len(found) > 1 or (history.ended_at is not None and not found):
            yield f"{id} ({waits[id]}) has {len(found)} ends: {found}"
    left = [row for row in history.tables["subscription"] if row["execution"] is not None]
    if history.ended_at is not None and left:
        yield f"subscriptions of waits that have ended are left: {left}"


def every_wait_ends_for_a_reason(history: History) -> Iterator[str]:
    for operation, before, after in replay(history):
        for change in operation.changes:
            if change.table != "finished" or change.kind != "+":
                continue
            execution = after["execution"][change.row["id"]]
            match execution["job"], change.row["status"]:
                case _, Status.CANCELLED:
                    pass
                case "sleep()", _:
                    yield from _judge_time(execution, change.row)
                case "approve()", _:
                    yield from _judge_answer(operation, execution, change.row)
                case "event()", Status.SUCCESS:
                    if (json.loads(change.row["result"])["id"], execution["id"]) not in after["delivery"]:
                        yield f"{execution['id']} has taken an event that was not delivered to it"
                case "event()", _:
                    yield from _judge_time(execution, change.row)
                case _:
                    continue
            if execution["job"] == "event()" and change.row["status"] != Status.SUCCESS:
                yield from _judge_missed(before, execution["id"])


def every_accepted_answer_counts(history: History) -> Iterator[str]:
    for operation, _, after in replay(history):
        if operation.name != "answer":
            continue
        given = operation.args[2]
        results = [
            json.loads(change.row["result"])
            for change in operation.changes
            if change.table == "finished" and after["execution"][change.row["id"]]["job"] == "approve()"
        ]
        if [(one["approved"], one["by"]) for one in results] != [(given.approved, given.by)]:
            yield f"the answer of {given.by} was accepted, and ended {results}"


def _judge_time(execution: Row, end: Row) -> Iterator[str]:
    if end["finished_at"] < execution["deadline"]:
        yield f"{execution['id']} ({execution['job']}) ended {end['status']} before its time was over"


def _judge_answer(operation: Operation, execution: Row, end: Row) -> Iterator[str]:
    decision = json.loads(end["result"])
    if decision["timed_out"]:
        yield from _judge_time(execution, end)
    elif operation.name != "answer":
        yield f"{execution['id']} was answered by {operation.name}: {decision}"


def _judge_missed(before: Ledger, id: str) -> Iterator[str]:
    """No event that the wait wants was there when it ended without one. An event may still be on its way to it."""
    for one in before["subscription"].values():
        if one["execution"] == id:
            for event in before["event"].values():
                if wants(one, event) and event["id"] not in before["event_open"]:
                    yield f"{id} ended without an event, although {event['id']} ({event['name']}) was there"


INVARIANTS = (every_wait_ends_once, every_wait_ends_for_a_reason, every_accepted_answer_counts)
