"""What comes from an executor that somebody else wrote, made into what the engine can go on with, whatever it is.

One that returns rubbish, or fails where it must not, costs its own execution, and not the worker with all others.
"""

from __future__ import annotations

import logging
from math import isfinite
from typing import Any

import msgspec

from rota.domain import payload
from rota.domain.duration import LONGEST_S, seconds
from rota.domain.outcome import Failed, GivenBack, Outcome, Snoozed, Succeeded
from rota.domain.status import Reason
from rota.domain.usage import Usage
from rota.executors.port import Executor

log = logging.getLogger("rota.engine")

OURS = "rota.executors."
NEEDED = ("rules", "completions", "grace_s", "begins_later", "run", "abandon")


def is_ours(executor: Executor) -> bool:
    """Whether it is one of Rota's own, which has looked at its result already."""
    return type(executor).__module__.startswith(OURS)


def outcome(returned: Any) -> Outcome:
    """What `run` returned, if it is an outcome that can be stored; if not, the failure that this is."""
    try:
        found: Outcome = msgspec.convert(msgspec.to_builtins(returned), Outcome)
        match found:
            case Succeeded(result=result):
                payload.decode(result, "its result")
            case Failed(retry_in_s=delay_s) if delay_s is not None:
                seconds(delay_s, "its delay")
            case Snoozed(delay_s=delay_s) | GivenBack(delay_s=delay_s):
                seconds(delay_s, "its delay")
            case _:
                pass
    except Exception as error:
        kind = type(returned).__name__
        problem = payload.error("OutcomeError", f"the executor returned no outcome but {kind}: {error}")
        return Failed(problem, Reason.BAD_RESULT, permanent=True)
    return found


def usage(told: Any) -> Usage | None:
    """What `run` said that it cost, if it can be stored."""
    try:
        found = None if told is None else msgspec.convert(msgspec.to_builtins(told), Usage)
    except Exception:
        return None
    return found if found is None or isfinite(found.cpu_s) else None


def grace_s(executor: Executor) -> float:
    try:
        return min(LONGEST_S, max(0.0, float(executor.grace_s)))  # What is no number is none at all.
    except Exception:
        log.exception("an executor does not know its grace")
        return 0.0


def abandon(executor: Executor) -> None:
    try:
        executor.abandon()
    except Exception:
        log.exception("an executor could not be abandoned")
