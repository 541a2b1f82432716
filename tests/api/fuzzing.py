"""Sends requests that Schemathesis makes from the served OpenAPI document, and holds each answer against it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from random import Random
from typing import Any, NamedTuple
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
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.asking import Answered, ask
from tests.api.server import Server
from tests.api.things import stage_of, things

BASE = "http://localhost"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
CONFIG = {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}
KNOWN = "known"
"""Stands in a path until it is known which target the request goes to."""
KNOWN_SHARE = 0.7
"""Of the requests, so many are about things that exist."""
NOT_SENT = {"Rota-Namespace", "wait"}
SETTINGS = hypothesis.settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Target(NamedTuple):
    """A server to send requests to, and an id or a name there for each parameter of a path."""

    server: Server
    token: str
    known: Mapping[str, str]

    @classmethod
    async def of(cls, server: Server) -> Target:
        token = server.token(namespaces=("*",))
        async with server.client(token) as client:
            return cls(server, token, await things(server, client, stage_of(server)))


class Fuzz:
    """`run(count)` makes about so many requests and sends each to all targets, because making one takes longer than
    its answer. `sent` counts the answers by status; `defects` has what was wrong with them.
    """

    def __init__(self, targets: Sequence[Target], loop: asyncio.Runner, seed: int) -> None:
        self.targets, self.loop, self.seed = targets, loop, seed
        self.random = Random(seed)
        self.sent: Counter[int] = Counter()
        self.defects: dict[tuple[str, str], str] = {}
        self.document = _trimmed(loop.run(_document(targets[0])))
        self.schema: Any = schemathesis.openapi.from_dict(self.document, config=SchemathesisConfig.from_dict(CONFIG))

    def run(self, count: int) -> None:
        """What exists is deleted last, because most requests are about it."""
        found = [found.ok() for found in self.schema.get_all_operations()]
        operations = sorted(found, key=lambda operation: operation.method == "delete")
        each = max(1, count // (2 * len(operations)))
        for operation, mode in product(operations, (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)):
            for known, share in _shares(tuple(operation.path_parameters.schema["properties"])).items():
                self._try(operation, mode, max(1, round(each * share)), known)

    def _try(self, operation: Any, mode: GenerationMode, count: int, known: tuple[str, ...]) -> None:
        """Sends `count` different requests, in whose paths these parameters name what the target knows."""
        try:
            strategy = operation.as_strategy(generation_mode=mode, path_parameters=dict.fromkeys(known, KNOWN))
        except Exception as error:
            self.defects[(operation.label, "strategy")] = repr(error)
            return

        @hypothesis.seed(self.seed)
        @hypothesis.settings(SETTINGS, max_examples=count)
        @given(case=strategy)
        def send(case: Any) -> None:
            self._aim(case)
            for target in self.targets:
                case.path_parameters |= {name: target.known[name] for name in known}
                self._send(case, target)

        with contextlib.suppress(hypothesis.errors.Unsatisfiable):
            send()  # A route without parameters has no wrong requests.

    def _send(self, case: Any, target: Target) -> None:
        given = case.as_transport_kwargs(base_url=BASE, headers={"Authorization": f"Bearer {target.token}"})
        given.pop("timeout", None)
        given.pop("allow_redirects", None)
        request = requests.Request(**given).prepare()
        try:
            answer = self.loop.get_loop().run_until_complete(_ask(target.server, request))
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
        """Few requests have a cursor, because no made-up cursor is valid. Some ask for one or two members only; few
        made-up names are members.
        """
        if isinstance(case.query, dict):
            if self.random.random() < 0.8:
                case.query.pop("cursor", None)
            if "fields" in case.query and self.random.random() < 0.8:
                case.query["fields"] = ",".join(self.random.sample(self._members(case.operation), 2))

    def _members(self, operation: Any) -> list[str]:
        """The members of the things in the answer of an operation."""
        schemas = self.document["components"]["schemas"]
        answer = self.document["paths"][operation.path][operation.method]["responses"]["200"]
        schema = answer["content"]["application/json"]["schema"]
        if "$ref" in schema:
            schema = schemas[schema["$ref"].rpartition("/")[2]]["properties"]["items"]["items"]
        (part,) = [one["$ref"] for one in schema["anyOf"] if one["$ref"].endswith("Part")]
        return list(schemas[part.rpartition("/")[2]]["properties"])


def _shares(names: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    """Which parameters of a path name what exists, and in how many of the requests; the other ones are made up."""
    made_up = {names[:end]: (1 - KNOWN_SHARE) / len(names) for end in range(len(names))}
    return made_up | {names: KNOWN_SHARE if names else 1.0}


async def _ask(server: Server, request: requests.PreparedRequest) -> Answered:
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
    return await ask(server.api, str(request.method), target.encode(), pairs, content)


async def _document(target: Target) -> Any:
    async with target.server.client(target.token) as client:
        return (await client.get("/openapi.json")).json()


def _trimmed(document: dict[str, Any]) -> dict[str, Any]:
    """Without what no request has: Schemathesis would make two credentials for each, which takes long."""
    del document["security"], document["components"]["securitySchemes"]
    for operation in (one for path in document["paths"].values() for one in path.values()):
        operation["parameters"] = [one for one in operation["parameters"] if one["name"] not in NOT_SENT]
    return document
