"""Row gate: an execution whose start deadline has passed ends as skipped."""

from __future__ import annotations

from rota.domain.claim import Claim
from rota.domain.outcome import Expired
from rota.ops import finish
from rota.ops.gates.claim_state import Claiming


def start_deadlines(claiming: Claiming, taken: list[Claim]) -> list[Claim]:
    late = [claim for claim in taken if claim.deadline is not None and is_late(claim)]
    if not late:
        return taken
    attempts = [(claim.held_by(claiming.worker), finish.Finished(claim.id, claim.fence, Expired())) for claim in late]
    finish.settle(claiming.tx, attempts)
    gone = {claim.id for claim in late}
    return [claim for claim in taken if claim.id not in gone]


def is_late(claim: Claim) -> bool:
    """Only a first start can be too late: an execution that has started before has met its deadline."""
    never_started = claim.first_start_at == claim.started_at
    return never_started and claim.deadline is not None and claim.deadline < claim.started_at
