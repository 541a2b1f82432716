"""Undos: a run that failed or was cancelled is undone before it ends, each of its steps once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rota.domain.status import Status
from tests.simulation.history import History, Row
from tests.simulation.invariants.runs import graph_named
from tests.simulation.ledger import endings

Place = tuple[int, int]
"""The number of a step, and the item of a map."""


def every_step_is_undone_once(history: History) -> Iterator[str]:
    """At least one undo is placed for each step to undo, and one succeeds unless the run says that it failed."""
    if history.ended_at is None:
        return
    facts = _Facts(history)
    undos = facts.undos()
    for run in facts.runs.values():
        if run["undo_of"] is not None or not facts.must_be_undone(run["id"]):
            continue
        for execution in facts.to_undo(run["id"]):
            found = undos.get(execution, set())
            good = [id for id in found if facts.ends[id]["status"] == Status.SUCCESS]
            if not found:
                yield f"{execution}, a step of {run['id']} ({facts.ends[run['id']]['status']}), was not undone"
            elif not good and not facts.says_undo_failed(run["id"]):
                yield f"the undo of {execution} failed, and no run above it says so"
    for execution, found in undos.items():
        good = [id for id in found if facts.ends[id]["status"] == Status.SUCCESS]
        if len(good) > 1:
            yield f"{execution} was undone {len(good)} times: {sorted(good)}"


def only_what_must_be_undone_is(history: History) -> Iterator[str]:
    facts = _Facts(history)
    for run in facts.runs.values():
        if run["undo_of"] is not None and not facts.must_be_undone(run["undo_of"]):
            yield f"{run['undo_of']} was undone, but it is {facts.ends[run['undo_of']]['status']}"


def a_run_ends_after_its_undo(history: History) -> Iterator[str]:
    ended: set[str] = set()
    undone_by: dict[str, str] = {}
    for operation in history.operations:
        for change in operation.changes:
            if change.table == "run" and change.kind == "+" and change.row["undo_of"] is not None:
                undone_by[change.row["undo_of"]] = change.row["id"]
                if change.row["parent"] == change.row["undo_of"] and change.row["undo_of"] in ended:
                    yield f"{change.row['undo_of']} had ended when its undo was opened"
        ended |= {change.row["id"] for change in operation.changes if change.table == "run_ended"}


class _Facts:
    """The end of a history, by runs and steps."""

    def __init__(self, history: History) -> None:
        self.ends = endings(history)
        self.runs: dict[str, Row] = {row["id"]: row for row in history.tables["run_ended"]}
        self._jobs = {row["id"]: row["job"] for row in history.tables["execution"]}
        self._placed: dict[str, dict[Place, str]] = defaultdict(dict)
        self._above: dict[str, list[str]] = defaultdict(list)
        for row in history.tables["step"]:
            self._placed[row["run"]][row["number"], row["item"]] = row["execution"]
            self._above[row["execution"]].append(row["run"])

    def must_be_undone(self, run: str) -> bool:
        """A sub-run that succeeded is undone with the run above, in which a retry may have kept it."""
        end = self.ends[run]
        if end["status"] == Status.SUCCESS:
            return any(self.runs[above]["undo_of"] is None and self.must_be_undone(above) for above in self._above[run])
        return end["status"] in (Status.FAILED, Status.CANCELLED)

    def to_undo(self, run: str) -> list[str]:
        """The executions of a run that must have an undo."""
        steps = graph_named(self._jobs[run]).steps
        return [
            execution
            for (number, _), execution in self._placed[run].items()
            if steps[number].undo is not None
            and (
                self.ends[execution]["status"] == Status.SUCCESS
                or (steps[number].undo_failed and self.ends[execution]["started_at"] is not None)
            )
        ]

    def undos(self) -> dict[str, set[str]]:
        """The undos of each execution. A retry of failed undos refers to those that succeeded before."""
        found: dict[str, set[str]] = defaultdict(set)
        for run in self.runs.values():
            if run["undo_of"] is not None:
                steps = graph_named(self._jobs[run["id"]]).steps
                for place, execution in self._placed[run["id"]].items():
                    if steps[place[0]].workflow is None and place in self._placed[run["undo_of"]]:
                        found[self._placed[run["undo_of"]][place]].add(execution)
        return found

    def says_undo_failed(self, run: str) -> bool:
        if self.ends[run]["reason"] == "undo_failed":
            return True
        return any(self.says_undo_failed(above) for above in self._above[run])


INVARIANTS = (every_step_is_undone_once, only_what_must_be_undone_is, a_run_ends_after_its_undo)
