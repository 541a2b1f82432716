"""The end of an execution, as every terminal move reports it."""

from __future__ import annotations

import msgspec

from rota.domain.status import Reason, Status


class End(msgspec.Struct, frozen=True, gc=False):
    """One execution that has ended."""

    id: str
    status: Status
    reason: Reason
    is_plain: bool = False
    """Whether it is a success of a job that does not count failures."""
    run: str | None = None
    """The run that it was a step of."""
    job: str = ""
    """The name of its job, if the move knows it."""
    is_repeated: bool = False
    """Whether another transaction has ended it, and has handed this end to `after_end`."""
