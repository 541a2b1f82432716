"""Opening a run: its graph and jobs are pinned, and its row is written."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import overrides
from rota.domain.instant import MICROSECONDS
from rota.domain.outcome import Error, Failed
from rota.domain.status import Reason
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow import next_look
from rota.domain.workflow.graph import Graph
from rota.ops.runs.run import Pinned, PinnedJob, Run, encode_pinned, pinned, pinned_graph, pinned_jobs
from rota.ops.runs.sub_retry import sub_retry
from rota.ops.runs.undo import opened_undo
from rota.store.hints import Due
from rota.store.port import Tx


class Opening(msgspec.Struct, frozen=True, array_like=True):
    """A run that is about to open, with the version in force of its workflow, and its parent run if it has one."""

    id: str
    namespace: str
    app: str
    job: str
    version: int
    digest: str
    priority: int
    actor: str
    headers: str | None
    trace: str | None
    parent: str | None
    parent_step: int | None
    parent_item: int | None
    parent_depth: int | None
    root: str | None
    run_at: int
    tick: int | None
    overrides: str | None
    is_undo: int
    """1 if this run undoes its parent."""
    parent_undo_of: str | None
    """The run that the parent undoes, if the parent is an undo."""
    retry_pinned: str | None
    """The data that the parent has pinned, if the parent is a retry."""

    def run(self, deadline: int | None = None, pinned: str = "", letters: str = "") -> Run:
        depth = 0 if self.parent_depth is None else self.parent_depth + 1
        return Run(
            id=self.id,
            root=self.root or self.id,
            parent=self.parent,
            parent_step=self.parent_step,
            parent_item=self.parent_item,
            depth=depth,
            version=self.version,
            opened_at=0,
            deadline=deadline,
            paused_at=None,
            namespace=self.namespace,
            app=self.app,
            job=self.job,
            graph=self.digest,
            pinned=pinned,
            letters=letters,
            stopping=None,
        )


def add_runs(tx: Tx, runs: Sequence[Run]) -> None:
    """Writes the rows of runs that open now."""
    rows = [
        (
            *(run.id, run.root, run.parent, run.parent_step, run.parent_item, run.depth, run.version, run.deadline),
            *(run.namespace, run.app, run.job, run.graph, run.pinned, run.letters, run.stopping, run.undo_of),
            run.retry_of,
        )
        for run in runs
    ]
    tx.run("add_runs", rows=rows, look_at=tx.now + next_look.QUIET)
    if expiring := [(run.id, run.deadline) for run in runs if run.deadline is not None]:
        tx.run("place_expiries", rows=expiring)
        tx.tell(Due(min(deadline for _, deadline in expiring)))


def prepared(tx: Tx, opening: Opening, known: dict[str, dict[str, PinnedJob]]) -> Run | Failed:
    """The run as it opens, or why it cannot open. `known` caches the pinned jobs of workflows within one claim."""
    wanted = overrides.version(opening.overrides)
    if wanted is not None:
        where = {"namespace": opening.namespace, "app": opening.app, "job": opening.job, "version": wanted}
        ((_, digest),) = tx.rows("definition_of_version", **where)
        opening = msgspec.structs.replace(opening, version=wanted, digest=digest)
    bare = opening.run()
    if opening.is_undo or opening.parent_undo_of is not None:
        return _prepared_undo(tx, opening, bare)
    earlier = None if opening.retry_pinned is None else sub_retry(tx, bare, opening.retry_pinned)
    if earlier is not None:
        opening = msgspec.structs.replace(opening, version=earlier.version, digest=earlier.graph)
    graph = pinned_graph(tx, opening.run())
    if bare.depth > graph.max_nesting:
        text = f"workflow {opening.job} is nested deeper than max_nesting={graph.max_nesting}"
        return Failed(Error("TooDeep", text), Reason.TOO_DEEP, permanent=True)
    workflow = f"{opening.namespace}/{opening.app}/{opening.digest}"
    jobs = known.get(workflow) if earlier is None else earlier.jobs
    if jobs is None:
        jobs = known[workflow] = pinned_jobs(tx, opening.namespace, opening.app, graph.callees)
    if missing := sorted(graph.callees - jobs.keys()):
        text = f"workflow {opening.job} has steps of jobs that app {opening.app} does not have: {', '.join(missing)}"
        return Failed(Error("UnknownJob", text), Reason.BAD_ARGUMENTS, permanent=True)
    if useless := sorted({step.undo for step in graph.steps if step.undo and jobs[step.undo].first is None}):
        text = f"job {useless[0]} undoes a step of workflow {opening.job}, but has no parameter for the step's result"
        return Failed(Error("BadUndo", text), Reason.BAD_ARGUMENTS, permanent=True)
    asked_for = opening.run_at if opening.tick is None else opening.tick
    about = Pinned(jobs, opening.actor, opening.priority or None, opening.headers, opening.trace, asked_for)
    letters = alphabet.UNDECIDED * len(graph.steps)
    if earlier is None:
        return opening.run(_deadline(tx, graph), encode_pinned(about), letters)
    is_latest = earlier.jobs is None
    about = msgspec.structs.replace(about, partial=earlier.partial, sub_retries=earlier.sub_retries, latest=is_latest)
    run = opening.run(_deadline(tx, graph), encode_pinned(about), earlier.letters)
    return msgspec.structs.replace(run, retry_of=earlier.retry_of)


def _prepared_undo(tx: Tx, opening: Opening, bare: Run) -> Run | Failed:
    """The undo of its parent run; or, if the parent is itself an undo, the undo of a sub-run of the undone run."""
    (parent,) = tx.records("runs_open", Run, ids=[opening.parent])
    earlier = pinned(parent.pinned).earlier_undo
    if opening.is_undo:
        return opened_undo(tx, bare, parent.id, earlier)
    place = {"number": opening.parent_step, "item": opening.parent_item or 0}
    ((undone,),) = tx.rows("execution_of_step", run=opening.parent_undo_of, **place)
    found = tx.one("execution_of_step", run=earlier, **place) if earlier is not None else None
    return opened_undo(tx, bare, undone, found[0] if found else None)


def _deadline(tx: Tx, graph: Graph) -> int | None:
    return None if graph.timeout is None else tx.now + round(graph.timeout * MICROSECONDS)
