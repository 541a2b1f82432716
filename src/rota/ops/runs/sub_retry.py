"""Retries of sub-runs. In a retry of a run, a sub-run keeps the steps that succeeded in the earlier sub-run.

A retry records which of its steps have sub-runs with the same arguments as before (`Pinned.sub_retries`). A sub-run of
such a step finds the earlier sub-run by the step and the item when it opens, keeps what succeeded there, and records
the same for the runs below it. If there is nothing to keep, the sub-run starts from scratch.
"""

from __future__ import annotations

import msgspec

from rota.domain.workflow import retry as plans
from rota.domain.workflow import undo
from rota.domain.workflow.letters import is_kept
from rota.ops.runs.kept import missing_result
from rota.ops.runs.run import PinnedJob, Run, pinned, pinned_graph
from rota.ops.runs.undo import undo_letters
from rota.store.port import Tx


class _Earlier(msgspec.Struct, frozen=True, array_like=True):
    """The earlier sub-run, which has ended."""

    id: str
    version: int
    graph: str
    pinned: str
    letters: str
    stopping: str | None
    undo: str | None


class SubRetry(msgspec.Struct, frozen=True):
    """How a sub-run opens as a retry of an earlier one."""

    retry_of: str
    version: int
    graph: str
    jobs: dict[str, PinnedJob] | None
    """The jobs that the earlier sub-run has pinned; None if the retry was requested with the latest versions."""
    letters: str
    partial: dict[int, tuple[str, int]]
    sub_retries: dict[int, tuple[str, int]]


def sub_retry(tx: Tx, bare: Run, parent_pinned: str) -> SubRetry | None:
    """How the sub-run opens as a retry; None if it starts from scratch. `bare` has the version that is in force."""
    earlier = _earlier(tx, parent_pinned, bare.parent_step or 0, bare.parent_item or 0)
    takes_latest = pinned(parent_pinned).latest
    if earlier is None or (takes_latest and earlier.graph != bare.graph):
        return None
    graph = pinned_graph(tx, msgspec.structs.replace(bare, version=earlier.version, graph=earlier.graph))
    undone = undo.undone(undo_letters(tx, earlier.undo))
    plan = plans.plan_of_sub_run(graph, earlier.letters, undone, was_stopped=earlier.stopping is not None)
    if plan is None:
        return None
    kept = [number for number, letter in enumerate(plan.letters) if is_kept(letter)]
    if missing_result(tx, earlier.id, kept, plan.partial) is not None:
        return None
    return SubRetry(
        earlier.id,
        earlier.version,
        earlier.graph,
        None if takes_latest else pinned(earlier.pinned).jobs,
        plan.letters,
        {number: (earlier.id, number) for number in plan.partial},
        {number: (earlier.id, number) for number in plan.sub_retries},
    )


def _earlier(tx: Tx, parent_pinned: str, number: int, item: int) -> _Earlier | None:
    """The sub-run to retry. If the retried run never opened it, it is searched for in the run that this one retried."""
    source = pinned(parent_pinned).sub_retries.get(number)
    while source is not None:
        run, number = source
        found = tx.records("ended_sub_run", _Earlier, run=run, number=number, item=item)
        if found:
            return found[0]
        above = tx.one("pinned_of_ended", id=run)
        source = None if above is None else pinned(above[0]).sub_retries.get(number)
    return None
