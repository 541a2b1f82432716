"""The answers of a route in the OpenAPI document: every status of success and every problem."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.api.answer import EVENT_STREAM, JSON, NDJSON
from rota.api.openapi_schemas import part_of
from rota.api.problem import STATUS
from rota.api.route import Access, Route

COMMON = (
    *("bad_parameter", "unknown_parameter", "bad_header", "bad_host", "not_found"),
    *("uri_too_long", "headers_too_large", "internal", "store_unavailable", "draining"),
)
"""Codes of problems that every route may have."""
OF_CALLERS = ("no_token", "bad_token", "expired_token", "revoked_token", "two_credentials", "wrong_scope")
OF_WRITES = ("cross_origin", "commit_unknown")
OF_BODIES = (
    *("bad_json", "bad_body", "bad_field", "unknown_field", "missing_field"),
    *("too_large", "too_slow", "unsupported_media_type"),
)
OF_KEYS = ("key_reused", "request_in_progress")
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
_EVENT = {
    "type": "object",
    "description": "One event. `data` is JSON.",
    "properties": {
        "event": {"type": "string", "description": "The kind of event."},
        "data": {"type": "string", "contentMediaType": JSON, "description": "What has happened, as JSON."},
        "id": {"type": "string", "description": "Its place in the stream, for the header Last-Event-ID."},
        "retry": {"type": "integer", "description": "Milliseconds to wait before connecting again."},
    },
}


class DryRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to `dryRun=true`: what the request would lead to. Nothing was changed."""

    dry_run: bool
    """Always true."""
    would: Any
    """What the request would lead to."""


def kinds(route: Route) -> list[Any]:
    """The types of all bodies of answers."""
    found = [one for given in successes(route).values() for one in given]
    return found if route.line is None else [*found, route.line]


def successes(route: Route) -> dict[int, tuple[Any, ...]]:
    """The statuses of success, and the types that each may have. Those of dry runs and of PUT follow from the route."""
    found = {route.status: types(route.answer), **{status: types(kind) for status, kind in route.also.items()}}
    if route.method == "PUT":
        found.setdefault(201, types(route.answer))
    if "dry_run" in route.query.__struct_fields__:
        found[200] = (*found.get(200, ()), DryRun)
    return dict(sorted(found.items()))


def types(kind: Any) -> tuple[Any, ...]:
    if kind is None:
        return ()
    return kind if isinstance(kind, tuple) else (kind,)


def responses(route: Route, by_kind: dict[str, Any], *, has_tag: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, given in successes(route).items():
        found[str(status)] = {"description": route.summary, "headers": _headers(status, has_tag=has_tag)}
        if given:
            content = {one: {"schema": _schema(one, given, route, by_kind)} for one in route.media}
            if status == route.status and route.answer_example is not None:
                content[JSON]["example"] = route.answer_example
            found[str(status)]["content"] = content
    if has_tag and route.method == "GET":
        found["304"] = {"description": "The ETag is still the one in If-None-Match."}
    for status, codes in sorted(problems(route).items()):
        found[str(status)] = {"description": ", ".join(codes), "content": _PROBLEM}
    return found


def _headers(status: int, *, has_tag: bool) -> dict[str, Any]:
    text = {"schema": {"type": "string"}}
    found = {"X-Request-Id": text}
    if has_tag:
        found["ETag"] = text
    if status in (201, 202):
        found["Location"] = text
    return found


def _schema(media: str, given: tuple[Any, ...], route: Route, by_kind: dict[str, Any]) -> Any:
    if media == EVENT_STREAM:
        return _EVENT
    if media == NDJSON:
        return {"type": "string", "description": "One JSON object per line.", "x-line": by_kind[repr(route.line)]}
    if media != JSON:
        return {"type": "string"}
    schemas = list({repr(one): by_kind[repr(one)] for one in given}.values())
    if "fields" in route.query.__struct_fields__ and "cursor" not in route.query.__struct_fields__:
        schemas += [part_of(one) for one in schemas]  # In a list each item may be a part, not the list.
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def problems(route: Route) -> dict[int, list[str]]:
    """The codes that the route may refuse a request with, by status."""
    codes = [*COMMON, *route.codes, "too_many_requests"]
    if route.needs is not Access.OPEN:
        codes += OF_CALLERS
        if route.method == "POST":
            codes += OF_KEYS
    if route.is_write:
        codes += OF_WRITES
    if route.is_heavy_read:
        codes += ["bad_cursor", "read_budget"]
    if route.body is not None or route.raw_body:
        codes += OF_BODIES
    found: dict[int, list[str]] = {}
    for code in sorted(set(codes)):
        found.setdefault(STATUS[code], []).append(code)
    return found
