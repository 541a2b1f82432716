"""Nothing waits beside a free slot for longer than it takes to look.

A claimer reads its lanes from behind a mark, and what is committed late, given back or more urgent lies below it. A
hint moves the mark back; what no hint told of is found by the next sweep from the start.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.engine.dispatcher import LONGEST_SWEEP_S, SWEEP_S
from tests.simulation.history import Heard, History, Incarnation, Operation, Row
from tests.simulation.ledger import Ledger, replay

START_S = 0.3
"""From the first sign of a worker to its first claim."""
SLACK_S = 0.3
"""Calls on their way, and a claim that brought nothing before the sweep that brings it."""
HINTED_S = 0.25
"""From hearing of it to the claim."""
AFTERMATH_S = LONGEST_SWEEP_S + 1.0
"""A call that failed or took its time delays the next look, and the next sweep even more."""
Pair = tuple[int, str]


def nothing_waits_beside_a_free_slot(history: History) -> Iterator[str]:
    """However it came there, and with or without a hint."""
    most_s = SWEEP_S + 2 * history.poll_s + SLACK_S
    troubles = {life.worker: _troubles(history, life) for life in history.incarnations}
    for worker, row, since, until in _waits(history):
        start = _first_calm(troubles[worker], since, most_s)
        if start + most_s < until:
            yield f"{row['id']} was ready from {since:.3f} s to {until:.3f} s, and worker {worker} had a free slot"


def rows_with_a_hint_are_claimed_at_once(history: History) -> Iterator[str]:
    """A hint about it, or about anything before it in its lane, is enough."""
    troubles = {life.worker: _troubles(history, life) for life in history.incarnations}
    heard: dict[tuple[int, int], list[Heard]] = {}
    for one in history.heard:
        heard.setdefault((one.worker, one.lane), []).append(one)
    for worker, row, since, until in _waits(history):
        for one in heard.get((worker, row["lane"]), []):
            if since <= one.at < until - HINTED_S and one.rank <= row["rank"]:
                if _first_calm(troubles[worker], one.at, HINTED_S) == one.at:
                    yield f"{row['id']} waited until {until:.3f} s; worker {worker} heard of it at {one.at:.3f} s"
                break


def _waits(history: History) -> Iterator[tuple[int, Row, float, float]]:
    """Worker, ready row, and from when to when one could have taken the other."""
    lives = {life.worker: life for life in history.incarnations}
    deaf = {(body.worker, body.started_at) for body in history.bodies if body.is_deaf}
    tainted: dict[int, float] = {}
    for worker, at in deaf:
        tainted[worker] = min(at, tainted.get(worker, at))
    since: dict[Pair, tuple[float, Row]] = {}
    for operation, _, after in replay(history):
        pairs = _pairs(lives, tainted, operation, after)
        for pair in [pair for pair in since if pair not in pairs]:
            begun_at, row = since.pop(pair)
            yield pair[0], row, begun_at, min(operation.at, _end_of(lives[pair[0]]))
        for pair, row in pairs.items():
            since.setdefault(pair, (max(operation.at, lives[pair[0]].started_at + START_S), row))


def _pairs(
    lives: dict[int, Incarnation], tainted: dict[int, float], operation: Operation, after: Ledger
) -> dict[Pair, Row]:
    """Which workers could take which rows right now, if they looked."""
    if not after["ready"]:
        return {}
    held: dict[int, int] = {}
    for row in after["running"].values():
        held[row["worker"]] = held.get(row["worker"], 0) + 1
    free = [
        lives[id]
        for id, row in after["worker"].items()
        if row["state"] == "live"
        and row["stopped_at"] is None
        and row["lease_until"] > operation.now
        and id in lives
        and held.get(id, 0) < lives[id].concurrency
        and operation.at < tainted.get(id, operation.at + 1)
    ]
    pairs = {}
    for id, row in after["ready"].items():
        queue, job = after["execution"][id]["queue"], after["execution"][id]["job"]
        if after["queue"][queue]["paused_at"] is None:
            for life in free:
                if (life.queues is None or queue in life.queues) and job not in life.missing:
                    pairs[life.worker, id] = row
    return pairs


def _end_of(life: Incarnation) -> float:
    """A process that is asked to leave claims no more, a moment before the database knows."""
    return min([life.draining_at] + [at for at in (life.ended_at,) if at is not None])


def _troubles(history: History, life: Incarnation) -> list[tuple[float, float]]:
    """When this worker, or the supervisor that beats its heart, had other worries."""
    calls = [(one.start, one.end) for one in history.troubles if one.caller in (life.name, f"worker {life.worker}")]
    jumps = [(at, at + history.lease_s) for at, _ in history.jumps]
    return sorted((start, end + AFTERMATH_S) for start, end in [*calls, *jumps, *life.stops])


def _first_calm(troubles: list[tuple[float, float]], since: float, length_s: float) -> float:
    """The first moment from `since` on that is followed by so much time without trouble."""
    for start, end in troubles:
        if start < since + length_s and end > since:
            since = end
    return since
