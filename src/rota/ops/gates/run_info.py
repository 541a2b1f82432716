"""Row gate: adds the facts about its run to each claimed step, for `Context.run`. Every execution may start."""

from __future__ import annotations

from msgspec.structs import replace

from rota.domain.claim import Claim
from rota.domain.instant import moment
from rota.domain.run_info import RunInfo
from rota.ops.gates.claim_state import Claiming
from rota.ops.runs.run import Run, graph_of, pinned


def run_info(claiming: Claiming, taken: list[Claim]) -> list[Claim]:
    if not claiming.has_steps:
        return taken
    widths = _widths(claiming, taken)
    about = {id: _about(run) for id, run in runs_of_steps(claiming, taken).items()}
    informed: list[Claim] = []
    for claim in taken:
        if claim.run is not None:
            run, number = runs_of_steps(claiming, taken)[claim.run], claim.step
            assert number is not None, "an execution that has a run is a step of it"
            step = graph_of(claiming.tx, run).steps[number].id
            width = None if claim.map_index is None else widths[claim.run, number]
            info = replace(about[claim.run], step=step, index=claim.map_index, width=width)
            claim = replace(claim, run_info=info)
        informed.append(claim)
    return informed


def runs_of_steps(claiming: Claiming, taken: list[Claim]) -> dict[str, Run]:
    """The open runs of the claimed steps, read once for the whole claim."""

    def read() -> dict[str, Run]:
        ids = sorted({claim.run for claim in taken if claim.run is not None})
        found = {run.id: run for run in claiming.tx.records("runs_open", Run, ids=ids)}
        assert len(found) == len(ids), "a run is open while one of its steps is"
        return found

    return claiming.once("runs of steps", read)


def _about(run: Run) -> RunInfo:
    scheduled_for, started_at = moment(pinned(run.pinned).scheduled_for), moment(run.opened_at)
    return RunInfo(id=run.id, workflow=run.job, scheduled_for=scheduled_for, started_at=started_at)


def _widths(claiming: Claiming, taken: list[Claim]) -> dict[tuple[str, int], int]:
    """By run and number: the number of items of each map, for the runs that have a claimed map item."""
    runs = sorted({claim.run for claim in taken if claim.run is not None and claim.map_index is not None})
    rows = claiming.tx.rows("tallies", runs=runs) if runs else []
    return {(run, number): sum(counts) for run, number, *counts in rows}
