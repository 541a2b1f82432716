"""An API in the test's own process, on a database of its own, with a client that speaks to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec

from rota.api.asgi import Api
from rota.api.routes import table
from rota.api.services import Exposure, Services
from rota.clock import MACHINE, Clock
from rota.config import Settings
from rota.domain import token as tokens
from rota.domain.access import LOCAL, SCOPES, Grant, Role, Scope
from rota.ops import tokens as token_ops
from rota.store.opening import open_store

BASE = "http://localhost/api/v1"


class Server:
    """`server.client()` is a caller; `server.token(...)` makes a token, after which every caller needs one."""

    def __init__(self, url: str, clock: Clock, exposure: Exposure, **settings: Any) -> None:
        self.settings = Settings(url=url, **settings)
        self.store = open_store(url, clock, busy_s=self.settings.busy_s)
        self.services = Services(self.store, clock, self.settings, exposure)
        self.api = Api(self.services, table())

    def client(self, token: str | None = None, **headers: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=self.api, raise_app_exceptions=True)
        given = {**({"Authorization": f"Bearer {token}"} if token else {}), **headers}
        return httpx.AsyncClient(transport=transport, base_url=BASE, headers=given)

    def token(
        self,
        role: Role | None = Role.ADMIN,
        *,
        namespaces: tuple[str, ...] = ("default",),
        scopes: tuple[Scope, ...] = (),
        name: str | None = None,
        expires_at: int | None = None,
        **about: Any,
    ) -> str:
        """Makes a token and returns its text."""
        text = tokens.written(self.services.clock.secret_bits(tokens.SECRET_BITS))
        granted = frozenset(scopes or (SCOPES[role] if role else ()))
        given = name or f"{role or 'scoped'}-{text[-4:]}"
        grant = Grant(actor=given, scopes=granted, namespaces=namespaces, role=role, **about)
        wanted = token_ops.TokenToMake(id=self.services.ids.new(), text=text, grant=grant, expires_at=expires_at)
        home = "default" if namespaces == ("*",) else namespaces[0]
        everything = msgspec.structs.replace(LOCAL, scopes=frozenset(Scope))
        self.store.transact(token_ops.make, home, wanted, everything)
        self.api.authenticator.forget()
        return text

    def close(self) -> None:
        self.services.close()


@contextmanager
def serving(url: str, clock: Clock = MACHINE, exposure: Exposure | None = None, **settings: Any) -> Iterator[Server]:
    server = Server(url, clock, exposure or Exposure(), **settings)
    try:
        yield server
    finally:
        server.close()


def code(answer: httpx.Response) -> str:
    """The code of a problem, which must be well formed."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["requestId"] == answer.headers["x-request-id"]
    assert body["type"].endswith(body["code"])
    return str(body["code"])
