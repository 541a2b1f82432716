"""Serialization failures and deadlocks at the end of `ctx.transaction()`: the execution runs again, without counting an
attempt."""

from __future__ import annotations

import psycopg

from rota.domain.errors import Snooze

FREE_CONFLICTS = 10
"""How often an execution may lose against other transactions at its end before that counts as an attempt."""
SOONEST_S, LATEST_S = 0.1, 10.0


class _NotSerializable(Snooze, psycopg.errors.SerializationFailure):
    """Still the error of psycopg, for a job that wants to try its block again itself."""


class _Deadlocked(Snooze, psycopg.errors.DeadlockDetected):
    """The same, for a deadlock."""


def conflict(error: BaseException, starts: int, random: float) -> Snooze | None:
    """The Snooze to raise for an error which only says that another transaction came first; None for other errors.

    `starts` is how many earlier starts of the execution were not counted as attempts, and `random` a number in [0, 1).
    """
    if starts >= FREE_CONFLICTS:
        return None
    delay_s = min(LATEST_S, SOONEST_S * 2**starts) * (0.5 + random)
    match error:
        case psycopg.errors.SerializationFailure():
            return _NotSerializable(delay_s, str(error))
        case psycopg.errors.DeadlockDetected():
            return _Deadlocked(delay_s, str(error))
        case _:
            return None
