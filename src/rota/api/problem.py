"""Errors as the API answers them: problem details (RFC 9457) with a stable code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rota.domain import errors
from rota.domain.errors import NotUnique, QueueFull, QuotaExceeded, RotaError

MOST_ERRORS = 20
_CODES_BY_STATUS = {
    400: "bad_json bad_parameter unknown_parameter bad_cursor bad_header bad_body two_credentials bad_host",
    401: "no_token bad_token expired_token revoked_token bad_signature",
    403: "wrong_scope exceeds_own_rights cross_origin not_asked",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "too_slow",
    409: "conflict deleted not_ended name_taken ambiguous_name defined_in_code has_dependents key_conflict not_unique "
    "not_pending already_decided too_many request_in_progress clock_skew in_use",
    412: "precondition_failed",
    413: "too_large",
    414: "uri_too_long",
    415: "unsupported_media_type",
    422: "bad_field unknown_field missing_field bad_arguments bad_definition bad_workflow unknown_job unknown_schedule "
    "cycle bad_cron needs_shell forbidden_address empty_filter key_reused",
    429: "queue_full namespace_full quota_exceeded too_many_requests too_many_streams",
    431: "headers_too_large",
    500: "internal",
    503: "store_unavailable commit_unknown draining read_budget",
}
STATUS: dict[str, int] = {code: status for status, codes in _CODES_BY_STATUS.items() for code in codes.split()}
"""Every code that a problem may have, and its status."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Of every answer that does not have its own."""
RETRY_AFTER_S = 1
"""How long a client should wait if the problem does not say."""


class Flaw(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong with a request: where it is, as a JSON pointer, a parameter or a header, and why."""

    code: str
    detail: str
    pointer: str | None = None
    parameter: str | None = None
    """The name of the parameter of the URL."""
    header: str | None = None


class ProblemBody(msgspec.Struct, frozen=True, rename="camel"):
    """What is wrong, and how to mend it. `code` is stable; `errors` has up to twenty flaws of the request."""

    type: str
    """The address of the description of the code."""
    title: str
    """The code in words."""
    status: int
    """The HTTP status."""
    detail: str
    code: str
    request_id: str
    errors: list[Flaw] | msgspec.UnsetType = msgspec.UNSET
    """Up to twenty flaws of the request."""
    retry_after: int | msgspec.UnsetType = msgspec.UNSET
    existing: Any | msgspec.UnsetType = msgspec.UNSET
    """What is there already and in the way."""


class Problem(Exception):
    """A request that is refused. The status follows from the code."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        flaws: Sequence[Flaw] = (),
        retry_after: float | None = None,
        existing: Any = None,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.code, self.detail, self.flaws, self.existing = code, detail, flaws[:MOST_ERRORS], existing
        self.status = status or STATUS[code]
        self.headers = dict(headers or {})
        self.retry_after = retry_after
        if retry_after is None and self.status in (429, 503):
            self.retry_after = RETRY_AFTER_S
        if self.retry_after is not None:
            self.headers["Retry-After"] = str(math.ceil(self.retry_after))
        if self.status == 401:
            self.headers["WWW-Authenticate"] = "Bearer"

    def body(self, request_id: str) -> bytes:
        shown = ProblemBody(
            type=f"/api/docs#{self.code}",
            title=self.code.replace("_", " ").capitalize(),
            status=self.status,
            detail=self.detail,
            code=self.code,
            request_id=request_id,
            errors=list(self.flaws) or msgspec.UNSET,
            retry_after=msgspec.UNSET if self.retry_after is None else math.ceil(self.retry_after),
            existing=msgspec.UNSET if self.existing is None else self.existing,
        )
        return msgspec.json.encode(shown)


def bad_parameter(parameter: str, words: str) -> Problem:
    """The parameter of a URL has a value that cannot be."""
    return Problem("bad_parameter", words, flaws=[Flaw("bad_parameter", words, parameter=parameter)])


def bad_member(pointer: str, words: str, code: str = "bad_field") -> Problem:
    """The member of a body that the JSON pointer leads to cannot be so."""
    return Problem(code, words, flaws=[Flaw(code, words, pointer=pointer)])


_CODES: dict[type[RotaError], str] = {
    errors.ArgumentsError: "bad_arguments",
    errors.WorkflowError: "bad_workflow",
    errors.DefinitionError: "bad_definition",
    errors.UnknownJob: "unknown_job",
    errors.UnknownSchedule: "unknown_schedule",
    errors.UnknownExecution: "not_found",
    errors.UnknownEvent: "not_found",
    errors.UsageError: "bad_field",
    errors.KeyConflict: "key_conflict",
    errors.KeyReused: "key_reused",
    errors.RequestInProgress: "request_in_progress",
    errors.QuotaExceeded: "quota_exceeded",
    errors.NotUnique: "not_unique",
    errors.QueueFull: "queue_full",
    errors.ClockSkew: "clock_skew",
    errors.Conflict: "conflict",
    errors.CommitUnknown: "commit_unknown",
    errors.StoreError: "store_unavailable",
}


def of(error: RotaError) -> Problem:
    """The problem for a refusal of the engine. The text of a database's error stays in the log."""
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), "internal")
    detail = str(error)
    if code == "store_unavailable":
        detail = "the database cannot be reached, or is busy: nothing was changed; repeat the request later"
    elif code == "commit_unknown":
        detail = "the connection to the database broke during the commit: repeat with the same Idempotency-Key"
    existing = error.holder if isinstance(error, NotUnique) else None
    after: float | None = error.retry_after.total_seconds() if isinstance(error, QueueFull) else None
    if isinstance(error, QuotaExceeded):
        # Unlike a rate, this does not mend itself: a repeat at a later time is refused as well.
        return Problem(
            code, detail, existing={"quota": error.quota, "limit": error.limit, "use": error.use}, status=409
        )
    if code == "request_in_progress":
        after = RETRY_AFTER_S
    return Problem(code, detail, existing=existing, retry_after=after)


def of_any(error: Problem | RotaError) -> Problem:
    """The problem for any refusal."""
    if isinstance(error, Problem):
        return error
    found = of(error)
    if found.code == error.code or error.code not in STATUS or error.code == "conflict":
        return found
    return Problem(error.code, str(error))


def not_found() -> Problem:
    """The same answer for a thing that is not there and for one of another tenant."""
    return Problem("not_found", "there is nothing here for this caller; check the path and the id")
