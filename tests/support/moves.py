"""The moves between the states of an execution that are allowed: the table that tests compare the source with."""

from __future__ import annotations

from rota.domain.status import Status

_S = Status
ALLOWED: dict[Status | None, frozenset[Status]] = {
    # None is the state before the enqueue.
    None: frozenset({_S.SCHEDULED, _S.WAITING, _S.QUEUED}),
    _S.SCHEDULED: frozenset({_S.QUEUED, _S.CANCELLED, _S.SKIPPED, _S.SCHEDULED}),
    # A debounce moves a waiting or queued execution to scheduled, or to retrying if an attempt has been counted.
    # A step that waits ends without a start: a sleep that is over, an approval that is answered.
    _S.WAITING: frozenset({_S.QUEUED, _S.SCHEDULED, _S.RETRYING, _S.SUCCESS, _S.FAILED, _S.CANCELLED, _S.SKIPPED}),
    _S.QUEUED: frozenset({_S.RUNNING, _S.WAITING, _S.SCHEDULED, _S.RETRYING, _S.CANCELLED, _S.SKIPPED}),
    _S.RUNNING: frozenset(
        # Given back or rescued goes to queued; snoozed goes to scheduled, and so does a job without a process.
        {_S.QUEUED, _S.SCHEDULED, _S.RETRYING, _S.SUCCESS, _S.FAILED, _S.CANCELLED, _S.SKIPPED}
    ),
    _S.RETRYING: frozenset({_S.QUEUED, _S.CANCELLED, _S.RETRYING}),
    _S.SUCCESS: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.SKIPPED: frozenset(),
}


def may_move(source: Status | None, target: Status) -> bool:
    return target in ALLOWED[source]
