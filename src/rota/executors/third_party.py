"""Wraps an executor that a third party wrote: an outcome that cannot be stored fails its own execution only."""

from __future__ import annotations

import logging
from math import isfinite
from typing import Any

import msgspec

from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.decoding import prepare
from rota.domain.duration import LONGEST_S, seconds
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.domain.outcome import Failed, GivenBack, Outcome, Snoozed, Succeeded
from rota.domain.status import Reason
from rota.domain.usage import Usage
from rota.executors.attempt_state import AttemptState
from rota.executors.port import Executor

log = logging.getLogger("rota.engine")

prepare(Outcome, Usage)
NEEDED = ("rules", "completions", "grace_s", "begins_later", "run", "abandon")


class ThirdParty(Executor):
    """Wraps the object that a third party's factory returned."""

    def __init__(self, theirs: Any, kind: str, *, max_result_bytes: int = payload.MOST_BYTES) -> None:
        if lacking := [name for name in NEEDED if not hasattr(type(theirs), name) and not hasattr(theirs, name)]:
            raise DefinitionError(f"{kind}: its executor has no {lacking[0]!r}")
        self._theirs = theirs
        self._max_result_bytes = max_result_bytes
        self.rules, self.completions, self.begins_later = theirs.rules, theirs.completions, theirs.begins_later
        try:
            self.grace_s = min(LONGEST_S, max(0.0, float(theirs.grace_s)))  # max() turns NaN into 0.
        except (TypeError, ValueError):
            raise DefinitionError(f"{kind}: grace_s of its executor must be a number, not {theirs.grace_s!r}") from None

    @property
    def missing(self) -> str:  # type: ignore[override]
        try:
            return str(getattr(self._theirs, "missing", "") or "")
        except Exception as error:
            return f"its executor failed: {error}"

    async def run(self, claim: Claim, attempt: AttemptState) -> Outcome:
        try:
            return outcome(await self._theirs.run(claim, attempt), self._max_result_bytes)
        finally:
            attempt.usage = usage(attempt.usage)

    def abandon(self) -> None:
        try:
            self._theirs.abandon()
        except Exception:
            log.exception("an executor could not be abandoned")


def outcome(returned: Any, max_result_bytes: int = payload.MOST_BYTES) -> Outcome:
    """The outcome that `run` returned, or a failure if it cannot be stored or its result is too large."""
    try:
        found: Outcome = msgspec.convert(msgspec.to_builtins(returned), Outcome)
        match found:
            case Succeeded(result=result):
                payload.encode(msgspec.Raw(result.encode()), "the result", max_result_bytes)
            case Failed(retry_in_s=delay_s) if delay_s is not None:
                seconds(delay_s, "its delay")
            case Snoozed(delay_s=delay_s) | GivenBack(delay_s=delay_s):
                seconds(delay_s, "its delay")
            case _:
                pass
    except ArgumentsError as error:
        return Failed(payload.error("ResultError", str(error)), Reason.BAD_RESULT, permanent=True)
    except Exception as error:
        kind = type(returned).__name__
        problem = payload.error("OutcomeError", f"the executor returned no outcome but {kind}: {error}")
        return Failed(problem, Reason.BAD_RESULT, permanent=True)
    return found


def usage(told: Any) -> Usage | None:
    """The usage that `run` reported, if it can be stored."""
    try:
        found = None if told is None else msgspec.convert(msgspec.to_builtins(told), Usage)
    except Exception:
        return None
    return found if found is None or isfinite(found.cpu_s) else None
