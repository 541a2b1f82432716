"""A call for which this machine had no process, no memory or no descriptor: nothing has run, and it is made again."""

from __future__ import annotations

import logging
from zlib import crc32

from rota.domain.claim import Claim
from rota.domain.outcome import Error, GivenBack
from rota.domain.status import Reason

DELAY_S = 5.0
"""It is made again after about so long, between half of that and one and a half."""
log = logging.getLogger("rota.engine")


def unbegun(claim: Claim, error: Error) -> GivenBack:
    """That is no fault of the job, so no attempt is burned: it may be better soon, as in the middle of a deploy.

    The worker rests by itself, so the delay is short, for others may be able to. It is there so that the next start,
    here or elsewhere, is of something else: what keeps this one from being started may be about it after all. Each has
    a delay of its own, or they would all come back in one wave.
    """
    share = crc32(f"{claim.id} {claim.fence}".encode()) / 2**32
    delay_s = round(DELAY_S * (0.5 + share), 1)
    said = f"{error.message}\n{error.traceback}".rstrip()
    log.warning("job %s goes back to the queue for %g s: %s", claim.job, delay_s, said)
    return GivenBack(Reason.NOT_BEGUN, delay_s, error)


def untried(error: Error) -> GivenBack:
    """While this worker rests from the last failure, which is the `error`: somebody else may have it at once."""
    return GivenBack(Reason.NOT_BEGUN, error=error)
