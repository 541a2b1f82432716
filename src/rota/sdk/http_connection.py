"""Requests to the HTTP API of a server: the token, repetitions, and problems as the errors of Rota."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from rota.clock import MACHINE
from rota.config import Settings
from rota.domain.errors import CommitUnknown, DefinitionError, RotaError, StoreUnavailable, UsageError
from rota.domain.url import masked
from rota.sdk import http_problem

if TYPE_CHECKING:
    import httpx

BASE = "/api/v1"
CONNECT_S = 10.0
ANSWER_S = 90.0
"""How long an answer may take: a wait on the server lasts for a minute at most."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Every request may be repeated: a POST has an Idempotency-Key, and the other methods are repeatable as such."""

    method: str
    path: str
    parameters: Mapping[str, Any] = {}
    content: bytes = b""
    headers: Mapping[str, str] = {}

    @property
    def is_write(self) -> bool:
        return self.method != "GET"


class HttpConnection:
    """One process's way to a server. Without a `namespace` it works in that of the token."""

    def __init__(self, settings: Settings, namespace: str | None = None) -> None:
        self.settings = settings
        self.name = masked(settings.url)
        self._headers = {} if namespace is None else {"Rota-Namespace": namespace}
        if settings.token is not None:
            self._headers["Authorization"] = f"Bearer {settings.token}"
        self._base = _base(settings.url)
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._context: Any = None
        os.register_at_fork(after_in_child=self._reset_after_fork)

    def get(self, path: str, **parameters: Any) -> bytes:
        return self._send(_get(path, parameters))

    async def aget(self, path: str, **parameters: Any) -> bytes:
        """On a connection of its own: this is for long waits, and a thread for each would be too many."""
        request, trying = _get(path, parameters), _Trying(self.settings, self.name)
        httpx = _httpx()
        async with httpx.AsyncClient(**self._options(), verify=self._tls(httpx)) as client:
            while True:
                try:
                    tried = await client.request(**_parts(request))
                except httpx.HTTPError as error:
                    tried = trying.lost(request, error)
                pause_s = trying.pause_after(request, tried)
                if pause_s is None:
                    return trying.content
                await asyncio.sleep(pause_s)

    def post(self, path: str, body: Any = None, *, key: str, **parameters: Any) -> bytes:
        """`key` is the Idempotency-Key: however often it is sent, the request has one effect."""
        return self._send(_with_body("POST", path, parameters, body, {"Idempotency-Key": key}))

    def put(self, path: str, body: Any) -> bytes:
        return self._send(_with_body("PUT", path, {}, body))

    def patch(self, path: str, body: Any, **parameters: Any) -> bytes:
        return self._send(_with_body("PATCH", path, parameters, body))

    def delete(self, path: str, **parameters: Any) -> bytes:
        return self._send(_with_body("DELETE", path, parameters))

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None

    def _send(self, request: Request) -> bytes:
        trying = _Trying(self.settings, self.name)
        while True:
            pause_s = trying.pause_after(request, self._once(request, trying))
            if pause_s is None:
                return trying.content
            threading.Event().wait(pause_s)

    def _once(self, request: Request, trying: _Trying) -> httpx.Response | RotaError:
        client = self._http()
        import httpx  # lazy: an extra

        try:
            return client.request(**_parts(request))
        except httpx.HTTPError as error:
            return trying.lost(request, error)

    def _http(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                module = _httpx()
                limits = module.Limits(max_connections=None, max_keepalive_connections=20)
                self._client = module.Client(**self._options(), verify=self._tls(module), limits=limits)
            return self._client

    def _options(self) -> dict[str, Any]:
        timeout = _httpx().Timeout(ANSWER_S, connect=CONNECT_S)
        return {"base_url": self._base, "headers": self._headers, "timeout": timeout}

    def _tls(self, httpx: Any) -> Any:
        """Made once: reading the certificates of all authorities takes longer than a request."""
        if self._base.lower().startswith("http:"):
            return False  # There is no certificate to check.
        if self._context is None:
            self._context = httpx.create_ssl_context()
        return self._context

    def _reset_after_fork(self) -> None:
        """After a fork: the open connections belong to the parent, and one of its threads may hold the lock."""
        self._lock = threading.Lock()
        self._client = None


class _Trying:
    """One request, tried until it is answered or `busy_s` are over."""

    def __init__(self, settings: Settings, server: str) -> None:
        self._server = server
        self._until = MACHINE.monotonic() + settings.busy_s
        self._pause_s = FIRST_PAUSE_S
        self._tries = 0
        self._may_be_done = False
        """Whether an earlier try may have had its effect, and only the answer was lost."""
        self.content = b""

    def lost(self, request: Request, error: httpx.HTTPError) -> RotaError:
        import httpx  # lazy: an extra

        was_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.UnsupportedProtocol)
        self._may_be_done |= was_sent and request.is_write
        about = f"{type(error).__name__}: {error}".rstrip(": ")
        if self._may_be_done:
            return self._unknown(about)
        may_pass = "CERTIFICATE_VERIFY_FAILED" not in about
        return StoreUnavailable(f"the server {self._server} does not answer ({about})", may_pass=may_pass)

    def pause_after(self, request: Request, tried: httpx.Response | RotaError) -> float | None:
        """How long to wait before the next try; None if `content` is the answer. Raises what is not to be repeated."""
        self._tries += 1
        if isinstance(tried, RotaError):
            error, after_s = tried, 0.0
            may_repeat = not isinstance(tried, StoreUnavailable) or tried.may_pass
        else:
            is_gone = request.method == "DELETE" and tried.status_code == 404 and self._tries > 1
            if tried.status_code < 300 or is_gone:
                self.content = tried.content
                return None
            error, may_repeat, after_s = http_problem.of(request.path, tried, self._server)
        pause_s = max(self._pause_s, after_s)
        if not may_repeat:
            raise error
        if MACHINE.monotonic() + pause_s > self._until:
            raise self._unknown(str(error)) if self._may_be_done else error
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)
        return pause_s

    def _unknown(self, about: str) -> CommitUnknown:
        return CommitUnknown(
            f"the connection to {self._server} broke before the answer, so it is not known whether the request had its "
            f"effect ({about})"
        )


def segment(text: str) -> str:
    """A name or an id as a part of a path."""
    return "%2E" * len(text) if text in (".", "..") else quote(text, safe=":")


def _get(path: str, parameters: Mapping[str, Any]) -> Request:
    return Request(method="GET", path=path, parameters=_given(parameters))


def _with_body(
    method: str, path: str, parameters: Mapping[str, Any], body: Any = None, headers: Mapping[str, str] | None = None
) -> Request:
    content = b"" if body is None else msgspec.json.encode(body)
    about = {**(headers or {}), **({"Content-Type": "application/json"} if content else {})}
    return Request(method=method, path=path, parameters=_given(parameters), content=content, headers=about)


def _given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}


def _parts(request: Request) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": f"{BASE}{request.path}",
        "params": request.parameters or None,
        "content": request.content,
        "headers": dict(request.headers),
    }


def _base(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_clear = bool(parts.hostname) and parts.port != 0 and not parts.query and not parts.fragment
    except ValueError:  # The port is not a number.
        parts, is_clear = urlsplit(""), False
    if not is_clear:
        raise DefinitionError(f"{masked(url)!r} is no URL of a server: write https://host or http://127.0.0.1:8080")
    if parts.username is not None or parts.password is not None:
        raise DefinitionError("the URL of a server has no user and no password: give the token by token= or ROTA_TOKEN")
    return url.rstrip("/")


def _httpx() -> Any:
    try:
        import httpx  # lazy: an extra
    except ImportError:
        raise UsageError('a server is reached with httpx, which is missing: pip install "rota[http]"') from None
    return httpx
