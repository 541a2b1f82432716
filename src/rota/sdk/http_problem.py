"""The problems that a server answers with, as the errors of Rota."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from rota.domain import errors
from rota.domain.errors import NotUnique, QueueFull, QuotaExceeded, RotaError, StoreUnavailable, UsageError

if TYPE_CHECKING:
    import httpx

_PASSING = {408, 429, 502, 503, 504}
_FOR_THE_CALLER = {"queue_full", "namespace_full", "too_many_streams"}
"""These pass, too, but the caller decides whether to wait."""
_ERRORS: dict[str, type[RotaError]] = {
    "bad_arguments": errors.ArgumentsError,
    "too_large": errors.ArgumentsError,
    "bad_definition": errors.DefinitionError,
    "bad_field": errors.DefinitionError,
    "bad_cron": errors.DefinitionError,
    "defined_in_code": errors.DefinitionError,
    "bad_workflow": errors.WorkflowError,
    "unknown_job": errors.UnknownJob,
    "unknown_schedule": errors.UnknownSchedule,
    "key_conflict": errors.KeyConflict,
    "key_reused": errors.KeyReused,
    "request_in_progress": errors.RequestInProgress,
    "clock_skew": errors.ClockSkew,
    "commit_unknown": errors.CommitUnknown,
    "not_pending": errors.NotPending,
    "not_ended": errors.NotEnded,
    "too_many": errors.TooMany,
    "not_asked": errors.Conflict,
}
_UNKNOWN: dict[str, tuple[str, type[RotaError]]] = {
    "executions": ("execution", errors.UnknownExecution),
    "runs": ("run", errors.UnknownExecution),
    "approvals": ("approval", errors.UnknownExecution),
    "events": ("event", errors.UnknownEvent),
    "schedules": ("schedule", errors.UnknownSchedule),
}
"""The noun for a message about something that does not exist, by the first word of the path."""


class Told(msgspec.Struct, frozen=True, rename="camel"):
    """The members of a problem that matter here."""

    code: str
    detail: str
    existing: Any = None
    retry_after: float = 0.0


_told = msgspec.json.Decoder(Told)


def of(path: str, answer: httpx.Response, server: str) -> tuple[RotaError, bool, float]:
    """The error, whether the request may be repeated, and after how many seconds at the earliest."""
    passes = answer.status_code in _PASSING
    try:
        told = _told.decode(answer.content)
    except msgspec.DecodeError:
        words = f"{server} answered {answer.status_code} without a reason: is it a server of Rota?"
        return StoreUnavailable(words, may_pass=passes), passes, 0.0
    error = _error(path, answer.status_code, told)
    may_repeat = (passes and told.code not in _FOR_THE_CALLER) or told.code == "request_in_progress"
    return error, may_repeat, told.retry_after


def _error(path: str, status: int, told: Told) -> RotaError:
    code, detail = told.code, told.detail
    if code == "not_found":
        _, root, *rest = path.split("/")
        noun, kind = _UNKNOWN.get(root, ("", UsageError))
        return kind(f"there is no {noun} {unquote(rest[0])!r}" if noun and rest else detail)
    if code == "not_unique":
        return NotUnique(detail, str(told.existing))
    if code == "quota_exceeded" and status == 409 and isinstance(told.existing, dict):
        return QuotaExceeded(detail, **{name: told.existing.get(name) for name in ("quota", "limit", "use")})  # type: ignore[arg-type]
    if code in ("queue_full", "namespace_full", "quota_exceeded"):
        return QueueFull(detail, timedelta(seconds=told.retry_after))
    if code in _ERRORS:
        return _ERRORS[code](detail)
    if status in _PASSING:
        return StoreUnavailable(detail, may_pass=True)
    if status >= 500:
        return StoreUnavailable(f"the server failed ({status}): {detail}", may_pass=False)
    error = (errors.Conflict if status == 409 else UsageError)(detail)
    error.code = code
    return error
