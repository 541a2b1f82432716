"""Row gate: a claimed execution of a workflow is not started. It opens as a run, and its first steps are placed."""

from __future__ import annotations

from rota.domain import requirement
from rota.domain.blocker import Kind
from rota.domain.claim import Claim
from rota.domain.outcome import Failed
from rota.domain.workflow import edges
from rota.domain.workflow.graph import Graph
from rota.ops import blockers, finish
from rota.ops.after_end import follow
from rota.ops.gates.claim_state import Claiming
from rota.ops.runs.advance import look_at
from rota.ops.runs.kept import keep_steps
from rota.ops.runs.opening import Opening, add_runs, prepared
from rota.ops.runs.run import PinnedJob, Run, graph_of
from rota.ops.runs.start import AT_FIRST

MOST_STEPS = 1_000
"""A claim opens no further run once its runs may have placed this many first steps: the transaction must stay short."""


def open_runs(claiming: Claiming, taken: list[Claim]) -> list[Claim]:
    lanes = {lane for group in claiming.groups if requirement.is_workflow(group.requirements) for lane in group.lanes}
    claims = {claim.id: claim for claim in taken if claim.lane in lanes} if lanes else {}
    if not claims:
        return taken
    tx = claiming.tx
    ids = sorted(claims)
    runs: list[Run] = []
    refused: list[tuple[Claim, Failed]] = []
    returned: list[Claim] = []
    first_steps: dict[str, int] = {}
    total = 0
    jobs: dict[str, dict[str, PinnedJob]] = {}
    for opening in tx.records("openings", Opening, ids=ids, lowest=ids[0], highest=ids[-1]):
        if total > MOST_STEPS:
            returned.append(claims[opening.id])
            continue
        found = prepared(tx, opening, jobs)
        if isinstance(found, Run):
            runs.append(found)
            if found.graph not in first_steps:
                first_steps[found.graph] = _first_steps(graph_of(tx, found))
            total += first_steps[found.graph]
        else:
            refused.append((claims[opening.id], found))
    if refused:
        reports = [(one.held_by(claiming.worker), finish.Finished(one.id, one.fence, why)) for one, why in refused]
        finish.settle(tx, reports)
    claiming.give_back(returned)
    if runs:
        blockers.block(tx, [(run.id, Kind.RUN, run.id) for run in runs])
        add_runs(tx, runs)
        for run in runs:
            keep_steps(tx, run)
        follow(tx, look_at(tx, runs))
    return [claim for claim in taken if claim.id not in claims]


def _first_steps(graph: Graph) -> int:
    """The most executions that are placed when a run with this graph opens."""
    first = (step for step, edge in zip(graph.steps, edges.of(graph).steps, strict=True) if not edge.upstream)
    return sum(AT_FIRST if step.is_map else 1 for step in first)
