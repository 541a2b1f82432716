"""A call for which this machine had no process, no memory or no descriptor: nothing has run, and it is made again."""

from __future__ import annotations

import logging

from rota.domain.claim import Claim
from rota.domain.outcome import Error, GivenBack
from rota.domain.status import Reason

DELAY_S = 5.0
LONGEST_DELAY_S = 300.0
"""It is made again after so long: at first, and at the most."""
log = logging.getLogger("rota.engine")


def unbegun(claim: Claim, error: Error) -> GivenBack:
    """That is no fault of the job, so no attempt is burned: it may be better soon, as in the middle of a deploy."""
    delay_s = min(LONGEST_DELAY_S, DELAY_S * 2 ** min(claim.fence - 1, 10))
    said = f"{error.message}\n{error.traceback}".rstrip()
    log.warning("job %s goes back to the queue for %g s: %s", claim.job, delay_s, said)
    return GivenBack(Reason.NOT_BEGUN, delay_s, error)
