"""Row gate: the job is not paused, and no older execution of it still waits to be released from its pause."""

from __future__ import annotations

from rota.domain.blocker import Kind, job_key
from rota.domain.claim import Claim
from rota.ops import blockers, job_pauses
from rota.ops.gates.claim_state import Claiming


def paused_jobs(claiming: Claiming, taken: list[Claim]) -> list[Claim]:
    tx = claiming.tx
    held = job_pauses.held(tx)
    suspects = [claim for claim in taken if claim.job in held] if held else []
    if not suspects:
        return taken
    lanes = sorted({claim.lane for claim in suspects})
    jobs = {lane: (namespace, app, job) for lane, namespace, app, job in tx.rows("lane_names", lanes=lanes)}
    paused = {job_key(*row) for row in tx.rows("paused_now", jobs=sorted(set(jobs.values())))}
    keys = {claim.id: job_key(*jobs[claim.lane]) for claim in suspects}
    fronts = blockers.fronts(tx, Kind.JOB_PAUSED, set(keys.values()))
    blocked = {
        claim.id: key
        for claim in suspects
        if (key := keys[claim.id]) in paused or claim.rank > fronts.get(key, claim.rank)
    }
    if blocked:
        blockers.block(tx, [(id, Kind.JOB_PAUSED, key) for id, key in blocked.items()])
    return [claim for claim in taken if claim.id not in blocked]
