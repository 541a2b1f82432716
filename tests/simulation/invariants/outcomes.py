"""What attempts lead to: whose outcome counts, what it costs, and what must not happen any more."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from rota.domain.lifecycle import CRASH_CAP
from rota.domain.status import Status
from tests.simulation.history import History, Row
from tests.simulation.ledger import attempts, changes, endings, replay

UNCOUNTED = ("given_back", "snoozed", "lost")


def a_stale_report_changes_nothing(history: History) -> Iterator[str]:
    for operation, before, _ in replay(history):
        if operation.name != "finish":
            continue
        touched = {change.row.get("id") for change in operation.changes}
        reports, worker = operation.args
        for report in reports:
            row = before["running"].get(report.id)
            is_current = row is not None and (row["fence"], row["worker"]) == (report.fence, worker)
            if not is_current and report.id in touched:
                yield f"worker {worker}'s report of {report.id} fence {report.fence} counted: {row or 'nothing'} ran"
            if is_current == (report.id in operation.result):
                yield f"a report of {report.id} fence {report.fence} was called {'stale' if is_current else 'current'}"


def results_are_of_their_attempt(history: History) -> Iterator[str]:
    for row in history.tables["finished"]:
        if row["status"] == Status.SUCCESS and json.loads(row["result"])["fence"] != row["fence"]:
            yield f"{row['id']} ended with fence {row['fence']}, but the result is {row['result']}"


def one_fenced_effect_per_success(history: History) -> Iterator[str]:
    ends = endings(history)
    accepted = Counter((effect.id, effect.fence) for effect in history.effects if effect.accepted)
    for (id, fence), count in accepted.items():
        if count > 1:
            yield f"{id} fence {fence} had {count} effects"
        end = ends.get(id)
        if end is not None and end["status"] == Status.SUCCESS and fence > end["fence"]:
            yield f"{id} had an effect with fence {fence}, above the one of its success, {end['fence']}"
    for id, end in ends.items():
        if end["status"] == Status.SUCCESS and accepted[id, end["fence"]] != 1:
            yield f"{id} succeeded with fence {end['fence']} and {accepted[id, end['fence']]} effects"


def attempts_and_crashes_are_counted(history: History) -> Iterator[str]:
    """Failures count, crashes count apart, and what was given back or snoozed costs nothing."""
    jobs = {row["id"]: row["job"] for row in history.tables["execution"]}
    for id, rows in attempts(history).items():
        most = history.rules[jobs[id]].retry.attempts if id in jobs else 0
        counted, crashes = 0, 0
        for row in rows:
            low, high = _expected(row, counted)
            lost_low, lost_high = _expected_crashes(row, crashes)
            if not low <= row["attempts"] <= high:
                yield f"{id} fence {row['fence']} ({row['status']}) has {row['attempts']} attempts after {counted}"
            if not lost_low <= row["crashes"] <= lost_high:
                yield f"{id} fence {row['fence']} ({row['status']}) has {row['crashes']} crashes after {crashes}"
            counted, crashes = row["attempts"], row["crashes"]
        if counted > most:
            yield f"{id} has {counted} attempts of {most}"
        is_loop = crashes >= CRASH_CAP and rows[-1]["status"] != Status.CANCELLED
        if crashes > CRASH_CAP or is_loop != (rows[-1]["reason"] == "crash_loop"):
            yield f"{id} ended as {rows[-1]['reason']} after {crashes} crashes"


def _expected(row: Row, counted: int) -> tuple[int, int]:
    if row["status"] in UNCOUNTED or row["status"] == Status.SKIPPED or row["reason"] == "crash_loop":
        return counted, counted
    if row["status"] == Status.CANCELLED or row["reason"] == "total_timeout":
        # It may have failed, or have been stopped, or have wanted to sleep for longer than it had left.
        return counted, counted + 1
    return counted + 1, counted + 1


def _expected_crashes(row: Row, crashes: int) -> tuple[int, int]:
    if row["reason"] == "suspected":
        return crashes, crashes  # Its worker died with several executions: the cause is not known.
    if row["status"] == "lost" or row["reason"] == "crash_loop":
        return crashes + 1, crashes + 1
    if row["status"] == Status.CANCELLED:
        return crashes, crashes + 1
    return crashes, crashes


def nothing_starts_early(history: History) -> Iterator[str]:
    for operation, before, after in replay(history):
        for change in operation.changes:
            if change.table == "ready" and change.kind == "+":
                id = change.row["id"]
                if id in before["scheduled"]:
                    due_at = before["scheduled"][id]["run_at"]
                elif id not in before["execution"]:
                    due_at = after["execution"][id]["run_at"]
                else:
                    continue
                if due_at > operation.now:
                    yield f"{operation.name} made {id} ready {(due_at - operation.now) / 1e6} s too early"


def nothing_starts_after_its_deadline(history: History) -> Iterator[str]:
    for operation, _, after in replay(history):
        for change in operation.changes:
            if change.table != "running" or change.kind != "+" or change.row["fence"] > 1:
                continue
            deadline = after["execution"][change.row["id"]]["deadline"]
            if deadline is not None and operation.now > deadline and change.row["id"] in after["running"]:
                yield f"{change.row['id']} started {(operation.now - deadline) / 1e6} s after its start deadline"


def only_the_late_are_skipped(history: History) -> Iterator[str]:
    executions = {row["id"]: row for row in history.tables["execution"]}
    for id, end in endings(history).items():
        if end["status"] == Status.SKIPPED:
            deadline = executions[id]["deadline"]
            if deadline is None or end["finished_at"] < deadline or end["started_at"] is not None:
                yield f"{id} was skipped at {end['finished_at']}, its start deadline is {deadline}"


def nothing_starts_after_a_cancel(history: History) -> Iterator[str]:
    cancelled: dict[str, float] = {}
    for operation in history.operations:
        for change in operation.changes:
            if change.table != "running":
                continue
            id = change.row["id"]
            if change.kind == "+" and id in cancelled:
                yield f"{id} started at {operation.at:.3f} s; it was cancelled at {cancelled[id]:.3f} s"
            if change.kind == "~" and change.row["cancel_at"] is not None:
                cancelled.setdefault(id, operation.at)
    ends = endings(history)
    for order in history.orders:
        if order.verb != "cancel" or order.answer not in (Status.CANCELLED, Status.RUNNING):
            continue
        end = ends.get(order.ids[0])
        fine = (Status.CANCELLED, Status.SUCCESS) if order.answer is Status.RUNNING else (Status.CANCELLED,)
        if end is not None and end["status"] not in fine:
            yield f"{order.ids[0]} was cancelled while {order.answer} and ended as {end['status']}"


def every_cancel_was_requested(history: History) -> Iterator[str]:
    """Nothing ends as cancelled unless a client cancelled or replaced it."""
    asked = {order.ids[0] for order in history.orders if order.verb == "cancel"}
    steps = history.steps
    for id, end in endings(history).items():
        if end["status"] == Status.CANCELLED and end["reason"] != "replaced" and id not in asked | steps:
            yield f"{id} ended as cancelled ({end['reason']}), which no client requested"


def dead_letters_are_the_failed(history: History) -> Iterator[str]:
    """Exactly the failed executions that were neither replayed nor discarded. Of a run, the root alone."""
    dead: set[str] = set()
    steps = history.steps
    for operation in history.operations:
        for change in operation.changes:
            if change.table == "finished" and change.row["final"] and change.row["status"] == Status.FAILED:
                dead.update({change.row["id"]} - steps)
        if operation.name in ("replay", "discard"):
            dead.difference_update(operation.args[1])
        elif operation.name == "repeat":
            dead.discard(operation.args[1])
    stored = {row["id"] for row in history.tables["dead"]}
    for id in sorted(dead ^ stored):
        yield f"{id} is {'not ' if id in dead else ''}a dead letter, which is wrong"


def a_dead_letter_is_replayed_once(history: History) -> Iterator[str]:
    replays: Counter[str] = Counter()
    for operation, change in changes(history, "execution", "+"):
        if operation.name == "replay":
            replays[change.row["replay_of"]] += 1
    for id, count in replays.items():
        if count > 1:
            yield f"the dead letter {id} was replayed {count} times"
