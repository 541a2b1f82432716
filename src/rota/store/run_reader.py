"""Reads runs of workflows and their steps.

A map may have 100,000 items: they are counted by the database, and never read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from rota.domain.status import TERMINAL, Status
from rota.domain.workflow.maps import Tally
from rota.ids import FIRST_ID, LAST_ID
from rota.store import reader
from rota.store.port import View

MOST_BAD_ITEMS = 5
FOREVER = 2**62
UNBOUNDED = 2**31 - 1
PAUSED, STOPPING, UNDOING, UNANSWERED = "paused", "stopping", "undoing", "unanswered"
OPEN = (Status.RUNNING, PAUSED, STOPPING, UNDOING, UNANSWERED)
"""The values of `RunFilter.status` that list open runs."""


class RunRow(msgspec.Struct, frozen=True, array_like=True):
    """An execution of a workflow. Its letters are empty until it has opened."""

    id: str
    namespace: str
    app: str
    job: str
    version: int
    graph: str
    """The digest of the version; empty if the version is not known any more."""
    status: Status
    reason: str
    created_at: int
    run_at: int
    tick: int | None
    started_at: int | None
    finished_at: int | None
    parent: str | None
    parent_step: int | None
    parent_item: int | None
    replay_of: str | None
    letters: str
    stopping: str | None
    deadline: int | None
    paused_at: int | None
    paused_by: str | None
    paused_note: str | None
    error: str | None
    undo: str | None
    """The id of the run that undoes it, if it is undoing or was undone."""
    undo_of: str | None
    """The run that this one undoes."""
    base: int
    """The shown version is the stored number minus this one: shown numbers count from 1 for each workflow."""


class StepRow(msgspec.Struct, frozen=True, array_like=True):
    """The execution of a step that is not a map. `letters` are those of its own steps, if it is a run."""

    id: str
    status: Status
    reason: str
    attempts: int
    fence: int
    created_at: int
    due_at: int | None
    started_at: int | None
    """The start of the first attempt."""
    finished_at: int | None
    error: str | None
    letters: str | None
    job: str
    arguments: str | None
    """What a wait waits for, as JSON. `arguments` and `result` are None for other steps."""
    deadline: int | None
    result: str | None


class BadItem(msgspec.Struct, frozen=True, array_like=True):
    """An item of a map that failed or was cancelled."""

    item: int
    execution: str
    status: Status
    reason: str
    attempts: int
    error: str | None
    map_index: int | None
    """None if the execution is not an item: the step is not a map, or the value that it maps over is not a list."""


class ItemEnds(msgspec.Struct, frozen=True):
    """The ended items of a map: how many, the first start, the last end, and the item that ended last.

    Items that a retry kept are counted in `tally` and in `kept`, but are ignored for the times. `last` has the item in
    its lowest 20 bits, as the statement `ends_of_items` explains.
    """

    tally: Tally
    kept: int = 0
    started_at: int | None = None
    finished_at: int | None = None
    last: int = -1

    @property
    def last_item(self) -> int | None:
        return None if self.last < 0 else self.last % 2**20


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to list, newest first.

    Runs that are steps are left out, unless `workflow` or `parent` is given or they are `unanswered`.
    """

    workflow: str | None = None
    app: str | None = None
    status: str | None = None
    """A status, or `paused`, `stopping`, `undoing`, or `unanswered` for runs with an open approval."""
    since: int | None = None
    until: int = FOREVER
    parent: str | None = None
    before: str = LAST_ID
    """The page begins behind this id."""
    is_ascending: bool = False
    limit: int = 50
    budget: int = UNBOUNDED
    """How many executions a page reads."""


def run(view: View, namespace: str, id: str) -> RunRow | None:
    """None if there is no such execution. It may be no run."""
    found = view.records("runs", RunRow, namespace=namespace, ids=[reader.known(id)])
    return found[0] if found else None


def is_run(view: View, namespace: str, id: str) -> bool:
    """Whether an execution is a run that has opened."""
    row = run(view, namespace, id)
    return row is not None and bool(row.letters)


def runs(view: View, namespace: str, ids: Sequence[str]) -> list[RunRow]:
    """The newest first."""
    return view.records("runs", RunRow, namespace=namespace, ids=list(ids))


class RunPage(msgspec.Struct, frozen=True):
    """`scanned_to` is the last execution that was read, if the budget ended before the page was full."""

    rows: list[RunRow]
    scanned_to: str | None = None


def page_of_runs(view: View, namespace: str, wanted: RunFilter, workflows: Iterable[str]) -> RunPage:
    """A page of runs of these workflows; for the next page, set `before` to the last id of this one."""
    common = {
        "namespace": namespace,
        "app": wanted.app,
        "since": wanted.since or 0,
        "until": wanted.until,
        "before": reader.position(wanted.before),
        "nested": int(wanted.workflow is not None or wanted.parent is not None or wanted.status == UNANSWERED),
        "status": wanted.status,
        "most": wanted.limit,
    }
    suffix = "_asc" if wanted.is_ascending else ""
    names = sorted(set(workflows))
    scanned_to: str | None = None
    if wanted.status in OPEN:
        rows = view.rows(f"page_of_open_runs{suffix}", **common, job=wanted.workflow, parent=wanted.parent)
        found = [row[0] for row in rows]
    elif wanted.status is not None and wanted.status not in TERMINAL:
        found = [row[0] for row in view.rows(f"page_of_pending_runs{suffix}", **common, jobs=names)]
    else:
        found, scanned_to = _of_workflows(view, wanted, names, common, suffix)
    return RunPage(_in_order(runs(view, namespace, _first(found, wanted)), wanted), scanned_to)


def _of_workflows(
    view: View, wanted: RunFilter, names: Sequence[str], common: dict[str, Any], suffix: str
) -> tuple[list[str], str | None]:
    """One statement per workflow: each reads the next rows from the index, and no more."""
    budget = max(wanted.limit, wanted.budget // max(1, len(names)))
    found: list[str] = []
    ends: list[str] = []
    for name in names:
        where = {"namespace": common["namespace"], "before": common["before"], "job": name}
        bounds = view.rows(f"end_of_budget{suffix}", **where, budget=budget) if budget < UNBOUNDED else []
        end = bounds[0][0] if bounds else LAST_ID if wanted.is_ascending else FIRST_ID
        rows = view.rows(f"page_of_runs{suffix}", **common, job=name, end=end)
        found += [row[0] for row in rows]
        if bounds and len(rows) < wanted.limit:
            ends.append(end)
    if not ends:
        return found, None
    # Behind the nearest end, runs of that workflow may be missing.
    nearest = min(ends) if wanted.is_ascending else max(ends)
    seen = [id for id in found if (id <= nearest if wanted.is_ascending else id >= nearest)]
    return seen, None if len(seen) >= wanted.limit else nearest


def _first(ids: Iterable[str], wanted: RunFilter) -> list[str]:
    return sorted(ids, reverse=not wanted.is_ascending)[: wanted.limit]


def _in_order(rows: list[RunRow], wanted: RunFilter) -> list[RunRow]:
    """The statement returns the newest first."""
    return rows[::-1] if wanted.is_ascending else rows


def open_approvals(view: View, runs: Sequence[str]) -> list[tuple[str, str]]:
    """The run and the arguments of each approval of these runs that waits for an answer."""
    return [(row[0], row[3]) for row in view.rows("open_approvals", runs=list(runs))] if runs else []


def page_of_sub_runs(view: View, namespace: str, run: str, numbers: Iterable[int], wanted: RunFilter) -> RunPage:
    """The runs that are steps of a run, those that a retry kept too."""
    of_step = partial(reader.page_of_steps, view, run, is_ascending=wanted.is_ascending)
    ids = {id for number in numbers for id in of_step(number, wanted.status, wanted.before, wanted.limit)}
    return RunPage(_in_order(runs(view, namespace, _first(ids, wanted)), wanted))


def runs_between(view: View, namespace: str, lowest: str, highest: str, most: int) -> list[str]:
    """The runs that have opened, newest first."""
    rows = view.rows("runs_between", namespace=namespace, lowest=lowest, highest=highest, most=most)
    return [row[0] for row in rows]


def steps(view: View, run: str, numbers: Sequence[int]) -> dict[int, StepRow]:
    """The executions of these steps, by number. None of them may be a map."""
    places = {row[2]: row[0] for row in view.rows("steps_of", run=run, numbers=list(numbers)) if row[1] == 0}
    found = view.records("states_of_steps", StepRow, ids=list(places)) if places else []
    return {places[row.id]: row for row in found}


def tallies(view: View, run: str) -> dict[int, Tally]:
    """The counts of the maps of an open run, by number of the step."""
    rows = view.rows("tallies", runs=[run])
    return {row[1]: Tally(**dict(zip(Tally.__struct_fields__, row[2:], strict=True))) for row in rows}


def ended_items(view: View, run: str, numbers: Sequence[int]) -> dict[int, ItemEnds]:
    found: dict[int, ItemEnds] = {}
    rows = view.rows("ends_of_items", run=run, numbers=list(numbers)) if numbers else []
    for number, status, is_kept, count, started_at, finished_at, last in rows:
        before = found.get(number, ItemEnds(Tally()))
        tally = before.tally + Tally(**{status: count})
        if is_kept:
            found[number] = msgspec.structs.replace(before, tally=tally, kept=before.kept + count)
            continue
        found[number] = ItemEnds(
            tally,
            before.kept,
            min(filter(None, (before.started_at, started_at)), default=None),
            max(filter(None, (before.finished_at, finished_at)), default=None),
            max(before.last, last),
        )
    return found


def bad_items(view: View, run: str, number: int, statuses: Iterable[Status], most: int) -> list[BadItem]:
    """The first executions of a step that ended with these statuses; more than one only if the step is a map."""
    found: list[BadItem] = []
    for status in statuses:
        if len(found) < most:
            where = {"run": run, "number": number, "status": status, "most": most - len(found)}
            found += view.records("bad_items", BadItem, **where)
    return found


def running_items(view: View, run: str) -> dict[int, int]:
    """How many executions of each step run now, by number of the step."""
    return dict(view.rows("running_items", run=run))


def place_in_run(view: View, namespace: str, id: str) -> tuple[str, int | None, int | None] | None:
    """The run that an execution is a step of, the number of the step, and the item of a map.

    The undo of a run has no number.
    """
    found = view.one("place_in_run", namespace=namespace, id=reader.known(id))
    return None if found is None else (found[0], found[1], found[2])


def ancestors(view: View, run: str) -> list[str]:
    """An open run and the open runs above it."""
    return [row[1] for row in view.rows("ancestors_of", ids=[run])]
