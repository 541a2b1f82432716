"""The retry of a sub-run. A retry of the run above opens it in place of a sub-run that starts from scratch.

A retry notes for which of its steps the sub-runs have the same arguments as before (`Pinned.resumed`). A sub-run of
such a step keeps what succeeded in the sub-run that was at the same place, and notes the same for the runs below it.
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
    """A sub-run that has ended."""

    id: str
    version: int
    graph: str
    pinned: str
    letters: str
    stopping: str | None
    undo: str | None


class SubRetry(msgspec.Struct, frozen=True):
    """How a sub-run opens that retries an earlier one."""

    retry_of: str
    version: int
    graph: str
    jobs: dict[str, PinnedJob] | None
    """The jobs as the earlier sub-run has pinned them; None if the retry asked for the latest versions."""
    letters: str
    partial: dict[int, tuple[str, int]]
    resumed: dict[int, tuple[str, int]]


def sub_retry(tx: Tx, bare: Run, parent_pinned: str) -> SubRetry | None:
    """How the sub-run opens as a retry; None if it starts from scratch. `bare` has the version in force."""
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
        {number: (earlier.id, number) for number in plan.resumed},
    )


def _earlier(tx: Tx, parent_pinned: str, number: int, item: int) -> _Earlier | None:
    """The sub-run to retry. If it never opened in the run that is retried, that of the run which that one retried."""
    source = pinned(parent_pinned).resumed.get(number)
    while source is not None:
        run, number = source
        found = tx.records("ended_sub_run", _Earlier, run=run, number=number, item=item)
        if found:
            return found[0]
        above = tx.one("pinned_of_ended", id=run)
        source = None if above is None else pinned(above[0]).resumed.get(number)
    return None
