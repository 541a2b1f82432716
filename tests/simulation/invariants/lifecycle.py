"""Where an execution may stand, and that it ends once and for good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.simulation.history import History
from tests.simulation.ledger import Ledger, changes, key_of, moves, replay
from tests.support.moves import may_move

MOVING = ("scheduled", "waiting", "ready", "running", "finished")


def everything_ends(history: History) -> Iterator[str]:
    if history.ended_at is None:
        stuck = {table: [row["id"] for row in history.tables[table]] for table in MOVING[:4] if history.tables[table]}
        yield f"not everything had ended in time: {stuck}"


def exactly_one_end(history: History) -> Iterator[str]:
    ends = Counter(row["id"] for row in history.tables["finished"] if row["final"])
    for row in history.tables["execution"]:
        if history.ended_at is not None and ends[row["id"]] != 1:
            yield f"{row['id']} has {ends[row['id']]} ends"
    for id, count in ends.items():
        if count > 1:
            yield f"{id} has {count} ends"


def nothing_after_the_end(history: History) -> Iterator[str]:
    ended: set[str] = set()
    for operation in history.operations:
        here = [change for change in operation.changes if change.table in MOVING]
        for change in here:
            if change.row["id"] in ended:
                yield f"{change.row['id']} had ended; then {operation.name} did {change.kind} {change.table}"
        ended.update(change.row["id"] for change in here if change.table == "finished" and change.row["final"])


def one_place_at_a_time(history: History) -> Iterator[str]:
    for operation, _, after in replay(history):
        for id in {change.row["id"] for change in operation.changes if change.table in ("execution", *MOVING)}:
            places = after.places(id)
            if len(places) != 1:
                yield f"{id} is in {places} after {operation.name}"


def every_move_is_allowed(history: History) -> Iterator[str]:
    for operation, id, source, target in moves(history):
        if not may_move(source, target):
            yield f"{operation.name} moved {id} from {source} to {target}"


def fences_rise(history: History) -> Iterator[str]:
    """Every start has the next fence, and the end has the highest. A new start waits for the record of the last."""
    last: dict[str, int] = {}
    open_starts: dict[str, int] = {}
    for operation in history.operations:
        for change in operation.changes:
            row = change.row
            if change.table == "running" and change.kind == "+":
                if row["fence"] != last.get(row["id"], 0) + 1:
                    yield f"{row['id']} started with fence {row['fence']} after {last.get(row['id'], 0)}"
                if row["id"] in open_starts:
                    yield f"{row['id']} started again while start {open_starts[row['id']]} was not accounted for"
                last[row["id"]] = open_starts[row["id"]] = row["fence"]
            elif change.table == "finished" and change.kind == "+":
                if row["fence"] < last.get(row["id"], 0):
                    yield f"{row['id']} was recorded with fence {row['fence']} after {last[row['id']]}"
                if open_starts.pop(row["id"], row["fence"]) != row["fence"]:
                    yield f"{row['id']}: the record of fence {row['fence']} is of no start"
                last[row["id"]] = max(last.get(row["id"], 0), row["fence"])


def the_witness_saw_everything(history: History) -> Iterator[str]:
    """The log, replayed, is the database: otherwise nothing else here means anything."""
    ledger = Ledger()
    for operation in history.operations:
        ledger.apply(operation)
    for table, rows in history.tables.items():
        if {key_of(table, row): row for row in rows} != ledger[table]:
            yield f"table {table} is not what the log makes of it"


def nothing_unexpected(history: History) -> Iterator[str]:
    yield from history.errors


def every_worker_has_left(history: History) -> Iterator[str]:
    for row in history.tables["worker"]:
        if history.ended_at is not None and row["stopped_at"] is None:
            yield f"worker {row['id']} ({row['name']}) is still there in the end"


def executions_never_change(history: History) -> Iterator[str]:
    for kind in ("~", "-"):
        for operation, change in changes(history, "execution", kind):
            yield f"{operation.name} did {kind} execution {change.row['id']}"
