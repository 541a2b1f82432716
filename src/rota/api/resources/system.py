"""Is the server there, is it ready, and who is the caller?"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from rota import __version__
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.openapi import document
from rota.api.problem import Problem
from rota.api.query import LONGEST_PAGE
from rota.api.resources.enqueue import MOST_ITEMS
from rota.api.route import BASE, Access, NoQuery, route
from rota.api.services import Services, look_at
from rota.api.waiting import LONGEST_S
from rota.domain.access import Grant
from rota.store import reader
from rota.views import namespace as namespaces
from rota.views.shape import Shape

READY_S = 1.0

log = logging.getLogger("rota.api")


class Health(Shape, frozen=True):
    """The server answers."""

    status: str
    """Always `ok`."""


class RequestLimits(Shape, frozen=True):
    """What one request may have at most."""

    payload_bytes: int
    """The bytes of arguments, or of the payload of an event."""
    page: int
    """The items on a page of a list."""
    many: int
    """The items of an array of executions or events; NDJSON has no such limit."""
    wait_s: float
    """The seconds of the parameter `wait`."""


class Me(Shape, frozen=True):
    """The caller of this request and its rights."""

    actor: str
    """The caller: `token:NAME`, `session:NAME` or `local`."""
    namespace: str
    """The namespace of this request."""
    namespaces: list[str]
    """The namespaces that the caller may choose with `Rota-Namespace`."""
    role: str | None
    scopes: list[str]
    limits: RequestLimits
    """What one request may have at most."""
    retention: int | None
    """How many seconds ended executions are kept in the namespace of this request; null means forever."""
    features: list[str]
    """What this server can do: the first parts of its paths."""
    server_version: str
    """The version of the server."""
    database: str
    """Its kind and version, such as `PostgreSQL 16.4`."""


_OK = msgspec.to_builtins(Health("ok"))


@route("GET /health", Access.OPEN, base="", answer=Health, answer_example=_OK)
async def health(call: Call, query: NoQuery) -> Answer:
    """Whether the process answers. It does not ask the database."""
    return shown(Health("ok"))


@route("GET /ready", Access.OPEN, base="", answer=Health, answer_example=_OK)
async def ready(call: Call, query: NoQuery) -> Answer:
    """Whether requests can be served: the database answers, and the server is not stopping.

    The database has a second to answer. On a busy machine the read may run late. An answer that the database has given
    to any request in the last second is as good.
    """
    services = call.services
    if services.is_draining and not services.is_replaced:
        raise Problem("draining", "the server is stopping")
    since = services.clock.monotonic() - READY_S
    reading = asyncio.ensure_future(call.read(reader.clock))
    done, _ = await asyncio.wait([reading], timeout=READY_S)
    reading.add_done_callback(look_at)
    if (done and reading.exception() is None) or services.answered_at >= since:
        return shown(Health("ok"))
    why = reading.exception() if done else f"no answer within {READY_S:g} s"
    log.warning("the server is not ready: %s", why)
    raise Problem("store_unavailable", "the database does not answer")


@route("GET /me", Access.ANY, answer=Me)
async def me(call: Call, query: NoQuery) -> Answer:
    """The caller of this request, its namespace and its rights."""
    return shown(await who(call, call.grant, call.namespace))


class Database:
    """The kind and the version of the database, read once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._name = ""

    async def name(self) -> str:
        self._name = self._name or await self._services.read(reader.database)
        return self._name


async def who(call: Call, grant: Grant, namespace: str) -> Me:
    settings, routes = call.services.settings, call.services.routes
    limits = RequestLimits(settings.max_payload_bytes, LONGEST_PAGE, MOST_ITEMS, LONGEST_S)
    return Me(
        actor=grant.actor,
        namespace=namespace,
        namespaces=list(grant.namespaces),
        role=grant.role,
        scopes=sorted(grant.scopes),
        limits=limits,
        retention=await call.read(namespaces.retention, namespace, settings.retention_days),
        features=sorted({route.path.split("/")[1] for route in routes if route.base == BASE}),
        server_version=__version__,
        database=await call.services.part(Database).name(),
    )


class OpenApi:
    """The document is made once, because that takes the event loop a fifth of a second."""

    def __init__(self, services: Services) -> None:
        self.answer = shown(document(services.routes, __version__))


@route("GET /openapi.json", Access.ANY, answer=dict[str, Any])
async def openapi(call: Call, query: NoQuery) -> Answer:
    """This document."""
    return call.services.part(OpenApi).answer
