"""The OpenAPI 3.1 document, made from the table of routes and the types of their bodies and answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rota.api import openapi_answers as answers
from rota.api.answer import JSON, NDJSON
from rota.api.openapi_schemas import choose_members, parameter, schemas
from rota.api.problem import ProblemBody
from rota.api.route import OF_OWN, SEGMENT, Access, Route
from rota.domain.access import Scope

_PARAMETER = re.compile(r"\{(\w+)\}")
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A request that is sent again with the same key has its effect once, and gets the same answer.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_NAMESPACE = {
    "name": "Rota-Namespace",
    "in": "header",
    "required": False,
    "description": "For tokens of several namespaces, and servers without tokens. Without it the first, or default.",
    "schema": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$"},
}
_IN_PATHS = {
    **{name: f"The id of the {name}." for name in ("action", "approval", "event", "execution", "run", "token")},
    **{name: f"The name of the {name}." for name in ("breaker", "calendar", "namespace", "queue")},
    "version": "The number of the version, from 1.",
    "key": "The key in the address of the hook.",
    "file": "The name of the file.",
}
"""The parameters of paths that are not an id or a name."""
_TAGS = '^(\\*|(W/)?"[!#-~]*")$'


def document(routes: Sequence[Route], version: str, server: str = "") -> dict[str, Any]:
    shown = [route for route in routes if route.media != ("text/html",)]
    queries = [route.query for route in shown]
    bodies = [route.body for route in shown if route.body is not None]
    given = [kind for route in shown for kind in answers.kinds(route)]
    by_kind, components = schemas([*queries, *bodies, *given, ProblemBody], bodies, queries)
    choosing = [route for route in shown if "fields" in route.query.__struct_fields__]
    choose_members([by_kind[repr(kind)] for route in choosing for kind in answers.types(route.answer)], components)
    tagged = {route.full_path for route in shown if "precondition_failed" in route.codes}
    paths: dict[str, Any] = {}
    for route in shown:
        is_one = route.is_write or route.path.endswith("}")  # A list has no tag.
        operation = _operation(route, by_kind, has_tag=is_one and route.full_path in tagged)
        paths.setdefault(route.full_path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Rota",
            "version": version,
            "description": "Jobs, executions, schedules, workflows and events of Rota. Members may be added: ignore "
            "those that you do not know, and expect new values of enumerations.",
        },
        "servers": [{"url": server or "/"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token that `rota tokens create` makes.",
                },
                "session": {"type": "apiKey", "in": "cookie", "name": "rota_session"},
            },
        },
    }


def _operation(route: Route, by_kind: dict[str, Any], *, has_tag: bool) -> dict[str, Any]:
    parameters = [
        *_path_parameters(route),
        *_query_parameters(route, by_kind),
        *_headers(route, has_tag=has_tag),
    ]
    found: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [route.path.split("/")[1]],
        "parameters": parameters,
        "responses": answers.responses(route, by_kind, has_tag=has_tag),
    }
    if route.needs is Access.OPEN:
        found["security"] = []
    if isinstance(route.needs, Scope) or route.needs in OF_OWN:
        found["x-scope"] = str(route.needs)
    if route.body is not None or route.raw_body:
        found["requestBody"] = _request_body(route, by_kind)
    return found


def _request_body(route: Route, by_kind: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": by_kind[repr(route.body)] if route.body is not None else {}}
    if route.example is not None:
        content["example"] = route.example
    lines = {"schema": {"type": "string", "description": "One JSON object per line, each as one of the array."}}
    text = {"schema": {"type": "string"}}
    media = route.raw_body or (JSON,)
    return {
        "required": not route.is_body_optional,
        "content": {one: content if one == JSON else lines if one == NDJSON else text for one in media},
    }


def _headers(route: Route, *, has_tag: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if route.needs is not Access.OPEN:
        found.append(_NAMESPACE)
        if route.method == "POST":
            found.append(_KEY)
    if has_tag:
        found += [_condition(name) for name in ("If-Match", "If-None-Match") if route.is_write or name != "If-Match"]
    return found


def _condition(name: str) -> dict[str, Any]:
    about = "only if the ETag is this one" if name == "If-Match" else "only if the ETag is another one"
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": f"Answers {about}; * stands for any.",
        "schema": {"type": "string", "pattern": _TAGS},
    }


def _operation_id(route: Route) -> str:
    words = [part.strip("{}") for part in route.full_path.removeprefix("/api/v1").split("/") if part]
    return "_".join([route.method.lower(), *words]).replace(".", "_")


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _IN_PATHS.get(name, f"The id or the name of the {name}."),
            "schema": {"type": "string", "pattern": f"^{SEGMENT.pattern}$"},
        }
        for name in _PARAMETER.findall(route.path)
    ]


def _query_parameters(route: Route, by_kind: dict[str, Any]) -> list[dict[str, Any]]:
    schema = by_kind[repr(route.query)]
    required = set(schema.get("required", ()))
    found = []
    for name, about in schema.get("properties", {}).items():
        described = {"description": about["description"]} if "description" in about else {}
        schema = parameter(about)
        found.append({"name": name, "in": "query", "required": name in required, "schema": schema, **described})
    return found
