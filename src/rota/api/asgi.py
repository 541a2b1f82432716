"""One request from its first byte to the last byte of its answer, as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from functools import cache
from typing import Any

import msgspec

from rota.api import body, cors, guard, problem, query
from rota.api.access_log import AccessLog
from rota.api.answer import EVENT_STREAM, Answer
from rota.api.auth import Authenticator
from rota.api.body import Gone
from rota.api.call import Call
from rota.api.feed import Feed
from rota.api.problem import Problem
from rota.api.route import OF_OWN, Access, Route, Table
from rota.api.services import Services
from rota.domain.access import Grant, Scope
from rota.domain.errors import RotaError

Scope_ = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
LEAST_COMPRESSED = 1024
STUCK_S = 30.0
"""A stream is closed if its client takes nothing for so long."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)
log = logging.getLogger("rota.api")


class Api:
    """The application that a server runs."""

    def __init__(self, services: Services, table: Table) -> None:
        self.services, self.table = services, table
        self.authenticator, self._access_log = Authenticator(services), services.part(AccessLog)
        services.routes, services.feed = table.routes, Feed(services)
        services.grant_of, services.forget_grants = self.authenticator.caller, self.authenticator.forget

    async def __call__(self, scope: Scope_, receive: body.Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope_, receive: body.Receive, send: Send) -> None:
        begun, exposure = self.services.clock.monotonic(), self.services.exposure
        request = _Request(scope, _request_id(scope["headers"], self.services))
        try:
            answer = await self._answer(request, receive)
        except Gone:
            return
        except Problem as found:
            answer = _of_problem(found, request.id)
        except RotaError as error:
            log.info("request %s: %s", request.id, error)
            answer = _of_problem(problem.of_any(error), request.id)
        except Exception:
            log.exception("request %s failed", request.id)
            unforeseen = Problem("internal", f"an unforeseen error; the log of the server has it under {request.id}")
            answer = _of_problem(unforeseen, request.id)
        if self.services.is_draining:
            answer = msgspec.structs.replace(answer, headers={**answer.headers, "Connection": "close"})
        try:
            status = await _send(answer, request, receive, send, cors.headers_for(request.headers, exposure))
        finally:
            if answer.release is not None:
                answer.release()
        took_ms = (self.services.clock.monotonic() - begun) * 1000
        # Values of parameters may be secrets.
        shown = request.path + ("?…" if request.raw_query else "")
        self._access_log.note(
            f"{request.method} {shown} {status} {took_ms:.1f}ms {request.address} {request.actor} {request.id}"
        )

    async def _answer(self, request: _Request, receive: body.Receive) -> Answer:
        guard.check_url(request.raw_path, request.raw_query)
        request.headers = headers = guard.headers_of(request.pairs)
        request.address = _address(request, self.services)
        exposure = self.services.exposure
        if request.path not in guard.PROBES:
            guard.check_host(
                headers.get("host", ""), request.path, exposure, is_open=await self.authenticator.is_open()
            )
        if (asked := cors.preflight(request.method, headers, exposure)) is not None:
            return asked
        route, parameters = self._route(request)
        is_stream = EVENT_STREAM in headers.get("accept", "") or EVENT_STREAM in route.media
        guard.check_origin(request.method, headers, request.scheme, exposure, is_stream=is_stream)
        grant = None
        if route.needs is not Access.OPEN:
            grant = await self.authenticator.caller(headers, request.address)
            request.actor = grant.actor
            _check_scope(route, grant)
        return await self._handle(request, route, parameters, grant, receive)

    def _route(self, request: _Request) -> tuple[Route, dict[str, str]]:
        found = self.table.find(request.path) if request.is_plain_path else None
        if found is None:
            if request.is_of_browser:
                return self.table.unknown, {}
            raise problem.not_found()
        routes, parameters = found
        method = "GET" if request.method == "HEAD" else request.method
        if method not in routes:
            allowed = sorted({*routes, *(["HEAD"] if "GET" in routes else [])})
            words = f"{request.method[:16]} is not possible here, but {', '.join(allowed)}"
            raise Problem("method_not_allowed", words, headers={"Allow": ", ".join(allowed)})
        return routes[method], parameters

    async def _handle(
        self, request: _Request, route: Route, parameters: dict[str, str], grant: Grant | None, receive: body.Receive
    ) -> Answer:
        namespace = self._namespace(request.headers, grant)
        raw_query = b"" if route.is_page else request.raw_query
        asked = query.parse(route.query, raw_query, self.services.clock.now())
        call = Call(
            self.services,
            route,
            grant or Grant(actor="anonymous", scopes=frozenset()),
            namespace,
            parameters,
            request.raw_query,
            request.headers,
            receive,
            request.id,
            request.address,
            request.path,
            is_https=(self.services.exposure.public_url or request.scheme).startswith("https"),
        )
        call.is_dry_run = bool(getattr(asked, "dry_run", False))
        if call.is_dry_run:
            call.checked_key()
        try:
            if route.body is None or route.raw_body:
                return await route.handler(call, asked)
            return await route.handler(call, asked, await self._body(call, route))
        finally:
            call.held.release()

    async def _body(self, call: Call, route: Route) -> Any:
        is_empty = call.headers.get("content-length", "0") == "0" and "transfer-encoding" not in call.headers
        if route.is_body_optional and is_empty:
            return None
        body.check_media(call.headers, ("application/json",))
        most = self.services.settings.max_payload_bytes + body.ROOM_BESIDE_PAYLOAD
        data = await call.read_body(most)
        await body.check(data)
        return body.decoded(data, route.body)

    def _namespace(self, headers: Mapping[str, str], grant: Grant | None) -> str:
        default = self.services.settings.namespace
        if grant is None:
            return default
        chosen = headers.get("rota-namespace", grant.first_namespace(default))
        if not grant.reaches(chosen):
            raise problem.not_found()
        return chosen


class _Request:
    """What is known of a request before it is routed."""

    def __init__(self, scope: Scope_, id: str) -> None:
        self.id = id
        self.method: str = scope["method"]
        self.raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.raw_query: bytes = scope.get("query_string", b"")
        self.path = self.raw_path.partition(b"?")[0].decode("latin-1")
        self.pairs = scope["headers"]
        self.scheme: str = scope.get("scheme", "http")
        self.client = scope.get("client")
        self.headers: dict[str, str] = {}
        self.address = ""
        self.actor = "-"

    @property
    def is_plain_path(self) -> bool:
        """Ids and names need no escapes, so a path with one leads nowhere."""
        return "%" not in self.path

    @property
    def is_of_browser(self) -> bool:
        """Whether a person asks for a page, by the address bar or a link, and not a program for data of the API."""
        is_of_api = self.path == "/api" or self.path.startswith("/api/")
        return self.method in ("GET", "HEAD") and not is_of_api and "text/html" in self.headers.get("accept", "")


def _check_scope(route: Route, grant: Grant) -> None:
    if route.needs is Access.ANY or (isinstance(route.needs, Scope) and grant.has(route.needs)):
        return
    scope = OF_OWN.get(route.needs)
    if scope is not None and (grant.has(scope) or grant.has(Scope.ENQUEUE)):
        return
    needed = scope or route.needs
    raise Problem("wrong_scope", f"this needs the scope {needed}, which {grant.actor} does not have")


def _address(request: _Request, services: Services) -> str:
    """The address of the client; behind a trusted proxy the one that the proxy names last."""
    direct = request.client[0] if request.client else "local"
    forwarded = request.headers.get("x-forwarded-for", "")
    if direct in services.exposure.trusted_proxies and forwarded:
        return forwarded.rpartition(",")[2].strip()[:64]
    return str(direct)


def _request_id(pairs: list[tuple[bytes, bytes]], services: Services) -> str:
    given = ""
    for name, value in pairs:
        if len(name) == 12 and name.lower() == b"x-request-id":
            given = value.decode("latin-1")
            break
    return given if given and _REQUEST_ID.fullmatch(given) else services.request_id()


def _of_problem(found: Problem, request_id: str) -> Answer:
    return Answer(
        status=found.status, body=found.body(request_id), media="application/problem+json", headers=found.headers
    )


async def _send(
    answer: Answer, request: _Request, receive: body.Receive, send: Send, further: Mapping[str, str]
) -> int:
    headers = {**problem.HEADERS, **answer.headers, **further, "X-Request-Id": request.id}
    content = answer.body
    if answer.body is not None or answer.stream is not None:
        headers.setdefault("Content-Type", answer.media)
    if content is not None:
        if _is_compressed(answer, content, request):
            # A large answer is compressed beside the event loop.
            is_large = len(content) > body.USUAL
            content = await asyncio.to_thread(gzip.compress, content, 5) if is_large else gzip.compress(content, 5)
            vary = f"{headers['Vary']}, Accept-Encoding" if "Vary" in headers else "Accept-Encoding"
            headers |= {"Content-Encoding": "gzip", "Vary": vary}
        headers["Content-Length"] = str(len(content))
    is_head = request.method == "HEAD"
    pairs = [(_encoded_name(name), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
    if answer.stream is not None and not is_head:
        # The stream of a POST may read the body itself, and notices by that when the client leaves.
        await _send_pieces(answer.stream, receive if request.method == "GET" else _never, send)
    await send({"type": "http.response.body", "body": b"" if is_head else content or b""})
    return answer.status


@cache
def _encoded_name(name: str) -> bytes:
    """The name of a header; the server has some dozens of them."""
    return name.lower().encode("latin-1")


async def _send_pieces(pieces: AsyncIterator[bytes], receive: body.Receive, send: Send) -> None:
    """Until the stream ends, the client leaves, or it takes nothing for a while."""

    async def send_all() -> None:
        async with contextlib.aclosing(pieces) as stream:  # type: ignore[type-var]
            async for piece in stream:
                async with asyncio.timeout(STUCK_S):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    sending, gone = asyncio.create_task(send_all()), asyncio.create_task(until_gone())
    try:
        await asyncio.wait([sending, gone], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, gone):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            await sending


async def _never() -> Mapping[str, Any]:
    await asyncio.Event().wait()
    return {}


def _is_compressed(answer: Answer, content: bytes, request: _Request) -> bool:
    accepted = "gzip" in request.headers.get("accept-encoding", "") and "Content-Encoding" not in answer.headers
    return accepted and len(content) > LEAST_COMPRESSED and not answer.is_secret


async def _lifespan(receive: body.Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
