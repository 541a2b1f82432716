"""The end of an execution, as every terminal move reports it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from rota.domain.status import Reason, Status


class Times(Protocol):
    """The fields of a report that the statistics need. The lane is 0 if the report does not have them."""

    @property
    def lane(self) -> int: ...
    @property
    def started_at(self) -> int: ...
    @property
    def waited(self) -> int: ...
    @property
    def late(self) -> int | None: ...


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
    times: Times | None = None
    """The report of its last attempt, if there is one."""
    is_repeated: bool = False
    """Whether another transaction has ended it, and has handed this end to `after_end`."""
