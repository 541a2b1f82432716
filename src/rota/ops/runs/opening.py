"""Opening a run: its graph and jobs are pinned, and its row is written."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.instant import MICROSECONDS
from rota.domain.outcome import Error, Failed
from rota.domain.status import Reason
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow.graph import Graph
from rota.ops.runs.run import Pinned, Run, encode_pinned, graph_of, pinned_jobs
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


def add_runs(tx: Tx, runs: Sequence[Run], retry_of: str | None = None) -> None:
    """Writes the rows of runs that open now."""
    rows = [
        (
            *(run.id, run.root, run.parent, run.parent_step, run.parent_item, run.depth, run.version, run.deadline),
            *(run.namespace, run.app, run.job, run.graph, run.pinned, run.letters),
        )
        for run in runs
    ]
    tx.run("add_runs", rows=rows, retry_of=retry_of)
    if expiring := [(run.id, run.deadline) for run in runs if run.deadline is not None]:
        tx.run("place_expiries", rows=expiring)
        tx.tell(Due(min(deadline for _, deadline in expiring)))


def prepared(tx: Tx, opening: Opening) -> Run | Failed:
    """The run as it opens, or why it cannot."""
    bare = opening.run()
    graph = graph_of(tx, bare)
    if bare.depth > graph.max_nesting:
        text = f"workflow {opening.job} is nested deeper than max_nesting={graph.max_nesting}"
        return Failed(Error("TooDeep", text), Reason.TOO_DEEP, permanent=True)
    jobs = pinned_jobs(tx, opening.namespace, opening.app, graph.callees)
    if missing := sorted(set(graph.callees) - jobs.keys()):
        text = f"workflow {opening.job} has steps of jobs that app {opening.app} does not have: {', '.join(missing)}"
        return Failed(Error("UnknownJob", text), Reason.BAD_ARGUMENTS, permanent=True)
    pinned = Pinned(jobs, opening.actor, opening.priority or None, opening.headers, opening.trace)
    return opening.run(_deadline(tx, graph), encode_pinned(pinned), alphabet.UNDECIDED * len(graph.steps))


def _deadline(tx: Tx, graph: Graph) -> int | None:
    return None if graph.timeout is None else tx.now + round(graph.timeout * MICROSECONDS)
