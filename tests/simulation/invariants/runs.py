"""Runs of workflows: every step has one outcome, none starts before its upstreams have ended, and every run ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import msgspec

from rota.domain.status import Status
from rota.domain.workflow import advance, edges, letters, undo
from rota.domain.workflow.graph import Graph, decode
from rota.domain.workflow.wait import is_wait
from tests.simulation.flows import DEFINITIONS, GRAPHS
from tests.simulation.history import Change, History, Row
from tests.simulation.ledger import endings, replay

TABLES = ("run", "run_ended", "step", "event", "event_open", "subscription", "delivery")


@cache
def graph_named(name: str) -> Graph:
    (definition,) = (one for one in DEFINITIONS if one.name == name)
    return decode(msgspec.json.encode(definition.target["graph"]))


def _graph_of(run: Row, job: str) -> Graph:
    """The graph of a run, which is derived if the run is an undo."""
    graph = graph_named(job)
    return graph if run["undo_of"] is None else undo.undo_graph(graph, run["letters"])


def without_runs(history: History) -> History:
    """The same history as if runs, and steps that wait, were not executions: their steps are."""
    runs = {row["id"] for row in history.tables["execution"] if row["job"] in GRAPHS or is_wait(row["job"])}

    def is_of_run(row: Row, table: str) -> bool:
        return table in TABLES or row.get("id" if table != "blocker" else "execution") in runs

    def kept(changes: list[Change]) -> list[Change]:
        return [change for change in changes if not is_of_run(change.row, change.table)]

    operations = [replace(one, changes=kept(one.changes)) for one in history.operations]
    tables = {name: [row for row in rows if not is_of_run(row, name)] for name, rows in history.tables.items()}
    return replace(history, operations=operations, tables=tables)


def every_run_ends(history: History) -> Iterator[str]:
    if history.ended_at is None:
        return
    for row in history.tables["run"]:
        yield f"run {row['id']} ({row['job']}) is open in the end: {row['letters']}"
    ends = endings(history)
    for row in history.tables["run_ended"]:
        if not letters.is_over(row["letters"]):
            yield f"run {row['id']} has ended with the letters {row['letters']}"
        if row["id"] not in ends:
            yield f"run {row['id']} has ended without an end"


def every_step_has_one_outcome(history: History) -> Iterator[str]:
    """The letter of a step is the end of its execution; a step without one was decided by others."""
    ends = endings(history)
    jobs = {row["id"]: row["job"] for row in history.tables["execution"]}
    placed: dict[tuple[str, int], list[str]] = {}
    for row in history.tables["step"]:
        placed.setdefault((row["run"], row["number"]), []).append(row["execution"])
    yield from _steps_of_others(history)
    for run in history.tables["run_ended"]:
        graph = _graph_of(run, jobs[run["id"]])
        for number, letter in enumerate(run["letters"]):
            executions = placed.get((run["id"], number), [])
            if letter in "kbB" and executions:
                found = {ends[id]["status"] for id in executions}
                if letter != "k" or found != {Status.SKIPPED}:
                    yield f"step {number} of {run['id']} is {letter!r} and was placed: {found}"
            if not executions or letter.isupper():
                continue
            if not graph.steps[number].is_map and letters.letter_of(Status(ends[executions[0]]["status"])) != letter:
                yield f"step {number} of {run['id']} is {letter!r}, but its execution {ends[executions[0]]['status']}"
        status = ends[run["id"]]["status"]
        if status in (Status.SUCCESS, Status.FAILED) and ends[run["id"]]["reason"] in ("completed", "step_failed"):
            right = advance.outcome(graph, run["letters"])
            if status != right:
                yield f"run {run['id']} is {status} with the letters {run['letters']}"


def _steps_of_others(history: History) -> Iterator[str]:
    """An execution is one step of its own run. Only a retry, one of undos, and the runs inside them refer to others."""
    own = {row["id"]: row["run"] for row in history.tables["execution"]}
    parents = {row["id"]: row["parent"] for row in history.tables["run_ended"]}
    keeping = {row["id"] for row in history.tables["execution"] if row["replay_of"] is not None}
    keeping |= {row["id"] for row in history.tables["run_ended"] if row["undo_of"] is not None}
    times: Counter[str] = Counter()
    for row in history.tables["step"]:
        run, execution = row["run"], row["execution"]
        if own[execution] == run:
            times[execution] += 1
            continue
        above = run
        while above is not None and above not in keeping:
            above = parents.get(above)
        if above is None:
            yield f"{execution} of run {own[execution]} is a step of {run}, which is no retry"
    for id, count in times.items():
        if count > 1:
            yield f"{id} is {count} steps"


def no_step_starts_before_its_upstreams_have_ended(history: History) -> Iterator[str]:
    jobs = {row["id"]: row["job"] for row in history.tables["execution"]}
    for operation, _, after in replay(history):
        for change in operation.changes:
            if change.table != "step" or change.kind != "+":
                continue
            run, number = change.row["run"], change.row["number"]
            graph = _graph_of(after["run"].get(run) or after["run_ended"][run], jobs[run])
            for upstream in edges.of(graph).steps[number].upstream:
                for row in after["step"].values():
                    if (row["run"], row["number"]) == (run, upstream) and row["execution"] not in after.ended:
                        yield f"{operation.name} placed step {number} of {run} before step {upstream} had ended"


def no_more_items_than_at_once(history: History) -> Iterator[str]:
    """An item that is ready, runs or waits for its retry has a place."""
    jobs = {row["id"]: row["job"] for row in history.tables["execution"]}
    bounded = {
        name: {number: step.at_once for number, step in enumerate(graph_named(name).steps) if step.at_once is not None}
        for name in GRAPHS
    }
    for operation, _, after in replay(history):
        if not any(change.table in ("ready", "step") for change in operation.changes):
            continue
        held: Counter[tuple[str, int]] = Counter()
        behind = {execution for execution, kind, _ in after["blocker"] if kind == "map"}
        for row in after["step"].values():
            if row["number"] in bounded[jobs[row["run"]]] and row["execution"] not in after.ended:
                held[row["run"], row["number"]] += row["execution"] not in behind
        for (run, number), count in held.items():
            if count > (bounded[jobs[run]][number] or 0):
                yield f"{count} items of step {number} of {run} are under way after {operation.name}"


INVARIANTS = (
    every_run_ends,
    every_step_has_one_outcome,
    no_step_starts_before_its_upstreams_have_ended,
    no_more_items_than_at_once,
)
