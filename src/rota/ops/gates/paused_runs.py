"""Row gate: the run of a step is not paused, nor any run above it. Such a step waits until the run is resumed."""

from __future__ import annotations

from rota.domain.blocker import Kind
from rota.domain.claim import Claim
from rota.ops import blockers
from rota.ops.gates.claim_state import Claiming


def paused_runs(claiming: Claiming, taken: list[Claim]) -> list[Claim]:
    tx = claiming.tx
    paused = {row[0] for row in tx.rows("paused_runs")} if claiming.has_steps else set()
    if not paused:
        return taken
    runs = {claim.run for claim in taken if claim.run is not None}
    above = {id: ancestor for id, ancestor in tx.rows("ancestors_of", ids=sorted(runs)) if ancestor in paused}
    still = {row[0] for row in tx.rows("paused_among", ids=sorted(set(above.values())))}
    behind = {id: ancestor for id, ancestor in above.items() if ancestor in still}
    blocked = {claim.id: behind[claim.run] for claim in taken if claim.run in behind}
    if blocked:
        blockers.block(tx, [(id, Kind.RUN_PAUSED, run) for id, run in blocked.items()])
    return [claim for claim in taken if claim.id not in blocked]
