"""Row gate: tells steps about their run, for `Context.run`. Lets every execution start."""

from __future__ import annotations

import msgspec

from rota.domain.claim import Claim
from rota.domain.instant import moment
from rota.domain.run_info import RunInfo
from rota.ops.gates.claim_state import Claiming
from rota.ops.runs.run import Run, graph_of, pinned


def run_info(claiming: Claiming, taken: list[Claim]) -> list[Claim]:
    if all(claim.run is None for claim in taken):
        return taken
    widths = _widths(claiming, taken)
    return [claim if claim.run is None else _informed(claiming, claim, claim.run, widths) for claim in taken]


def run_of_step(claiming: Claiming, id: str) -> Run:
    """The open run of a claimed step, read once for the whole claim."""

    def read() -> Run:
        found = claiming.tx.records("run_open", Run, id=id)
        assert found, f"run {id} is open while one of its steps is"
        return found[0]

    return claiming.once(f"run {id}", read)


def _widths(claiming: Claiming, taken: list[Claim]) -> dict[tuple[str, int], int]:
    """The count of items of every map in these runs, of which an item was claimed."""
    runs = sorted({claim.run for claim in taken if claim.run is not None and claim.map_index is not None})
    rows = claiming.tx.rows("tallies", runs=runs) if runs else []
    return {(run, number): sum(counts) for run, number, *counts in rows}


def _informed(claiming: Claiming, claim: Claim, id: str, widths: dict[tuple[str, int], int]) -> Claim:
    run, number = run_of_step(claiming, id), claim.step
    assert number is not None, "an execution that has a run is a step of it"
    info = RunInfo(
        id=id,
        workflow=run.job,
        scheduled_for=moment(pinned(run.pinned).scheduled_for),
        started_at=moment(run.opened_at),
        step=graph_of(claiming.tx, run).steps[number].id,
        index=claim.map_index,
        width=None if claim.map_index is None else widths[id, number],
    )
    return msgspec.structs.replace(claim, run_info=info)
