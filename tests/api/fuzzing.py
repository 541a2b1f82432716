"""Sends requests that Schemathesis makes from the served OpenAPI document, and holds each answer against it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.asking import Answered, ask
from tests.api.server import Server

BASE = "http://localhost"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SETTINGS = hypothesis.settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Fuzz:
    """`run(count)` sends about so many requests; `defects` has what was wrong with the answers."""

    def __init__(self, server: Server, token: str, known: Mapping[str, str], loop: asyncio.Runner, seed: int) -> None:
        self.server, self.token, self.known, self.loop, self.seed = server, token, known, loop, seed
        self.random = Random(seed)
        self.sent: Counter[int] = Counter()
        self.defects: dict[tuple[str, str], str] = {}
        self.document = loop.run(self._document())
        self.schema: Any = schemathesis.openapi.from_dict(self.document, config=SchemathesisConfig())

    async def _document(self) -> Any:
        async with self.server.client(self.token) as client:
            return (await client.get("/openapi.json")).json()

    def run(self, count: int) -> None:
        operations = [found.ok() for found in self.schema.get_all_operations()]
        each = max(1, count // (2 * len(operations)))
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                self._try(operation, mode, each)

    def _try(self, operation: Any, mode: GenerationMode, count: int) -> None:
        try:
            strategy = operation.as_strategy(generation_mode=mode)
        except Exception as error:
            self.defects[(operation.label, "strategy")] = repr(error)
            return

        @hypothesis.seed(self.seed)
        @hypothesis.settings(SETTINGS, max_examples=count)
        @given(case=strategy)
        def send(case: Any) -> None:
            self._send(case)

        with contextlib.suppress(hypothesis.errors.Unsatisfiable):
            send()  # A route without parameters has no wrong requests.

    def _send(self, case: Any) -> None:
        self._aim(case)
        given = case.as_transport_kwargs(base_url=BASE, headers={"Authorization": f"Bearer {self.token}"})
        given.pop("timeout", None)
        given.pop("allow_redirects", None)
        request = requests.Request(**given).prepare()
        try:
            answer = self.loop.run(self._ask(request))
        except Exception as error:
            self.defects.setdefault((case.operation.label, repr(error)[:80]), f"{request.url} {request.body!r}")
            return
        self.sent[answer.status] += 1
        response = Response(
            status_code=answer.status,
            headers={name: [value] for name, value in answer.headers.items()},
            content=answer.body,
            request=request,
            elapsed=0.0,
            verify=False,
        )
        try:
            case.validate_response(response, checks=CHECKS)
        except BaseExceptionGroup as failures:
            for failure in failures.exceptions:
                key = (case.operation.label, f"{answer.status} {type(failure).__name__} {str(failure)[:300]}")
                self.defects.setdefault(key, f"{request.url} {request.body!r} -> {answer.body[:600]!r}")

    def _aim(self, case: Any) -> None:
        """Most requests are about things that exist. None waits, none has two credentials, and few have a cursor,
        because no made-up cursor is valid. Some ask for one or two members only; few made-up names are members.
        """
        for name in case.path_parameters or {}:
            if self.random.random() < 0.7:
                case.path_parameters[name] = self.known[name]
        if isinstance(case.query, dict):
            case.query.pop("wait", None)
            if self.random.random() < 0.8:
                case.query.pop("cursor", None)
            if "fields" in case.query and self.random.random() < 0.8:
                case.query["fields"] = ",".join(self.random.sample(self._members(case.operation), 2))
        case.headers.pop("Rota-Namespace", None)
        case.cookies.clear()

    def _members(self, operation: Any) -> list[str]:
        """The members of the things in the answer of an operation."""
        schemas = self.document["components"]["schemas"]
        answer = self.document["paths"][operation.path][operation.method]["responses"]["200"]
        schema = answer["content"]["application/json"]["schema"]
        if "$ref" in schema:
            schema = schemas[schema["$ref"].rpartition("/")[2]]["properties"]["items"]["items"]
        (part,) = [one["$ref"] for one in schema["anyOf"] if one["$ref"].endswith("Part")]
        return list(schemas[part.rpartition("/")[2]]["properties"])

    async def _ask(self, request: requests.PreparedRequest) -> Answered:
        parts = urlsplit(str(request.url))
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        body: Any = request.body or b""
        content = body.encode() if isinstance(body, str) else bytes(body)
        headers = {**request.headers, "Host": "localhost", "Accept-Encoding": "identity"}
        pairs = [
            (
                name.lower().encode("latin-1") if isinstance(name, str) else name.lower(),
                value.encode("latin-1", "replace") if isinstance(value, str) else value,
            )
            for name, value in headers.items()
        ]
        return await ask(self.server.api, str(request.method), target.encode(), pairs, content)
