"""What a handler gets: the caller's rights, the namespace, the request, and the ways to read and to change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

from rota.api import body
from rota.api.answer import Answer
from rota.api.body import Receive
from rota.api.problem import Problem
from rota.api.route import Route
from rota.api.services import Services
from rota.domain.access import Grant, Scope
from rota.domain.actor import Actor
from rota.ops import request_keys
from rota.ops.request_keys import Kept, RequestKey
from rota.store.port import Tx, View

P = ParamSpec("P")
T = TypeVar("T")
_KEY = re.compile(r'"?([\x21-\x7e]{1,255}?)"?', re.ASCII)
_KEPT_HEADERS = ("Location", "ETag")


class Call:
    """One request to a route."""

    def __init__(
        self,
        services: Services,
        route: Route,
        grant: Grant,
        namespace: str,
        path: Mapping[str, str],
        raw_query: bytes,
        headers: Mapping[str, str],
        receive: Receive,
        request_id: str,
        address: str,
        url: str,
        *,
        is_https: bool = False,
    ) -> None:
        self.services, self.route, self.grant, self.namespace = services, route, grant, namespace
        self.path, self.raw_query, self.headers, self.url = path, raw_query, headers, url
        self.receive, self.request_id, self.address = receive, request_id, address
        self.is_https = is_https
        self.actor = Actor(grant.actor, address, request_id)
        self.is_dry_run = False
        """Whether `act` rolls back what it did; a route with the parameter `dryRun` sets it."""
        self.held = services.room.held()
        """The bytes of the body, until the request is answered."""
        self._raw_body = b""

    def require(self, *scopes: Scope) -> None:
        """For rights that depend on the content of a request."""
        for scope in scopes:
            if not self.grant.has(scope):
                raise Problem("wrong_scope", f"this needs the scope {scope}, which {self.grant.actor} does not have")

    @property
    def credentials(self) -> tuple[str | None, str | None]:
        """What `check_token` checks: the same for all requests of one caller."""
        return self.headers.get("authorization"), self.headers.get("cookie")

    async def check_token(self) -> None:
        """For requests that last: refuses a token that was revoked or has expired since they began."""
        await self.services.grant_of(self.headers, self.address)

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Over one consistent state. A list or a count is stopped when its client leaves."""
        if self.route.is_heavy_read:
            return await self.services.read_heavy(self.leaving, query, *args, **kwargs)
        return await self.services.read(query, *args, **kwargs)

    async def leaving(self) -> None:
        """Returns when the client has closed the connection. Only for routes without a body."""
        assert not self.route.is_write, "this would take the pieces of the body"
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def act(
        self,
        show: Callable[[Tx, T], Answer],
        op: Callable[Concatenate[Tx, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Runs an operation, and `show` on its result, in one transaction together with the Idempotency-Key.

        `show` sees the state that the operation leads to. With `is_dry_run` all of it is rolled back.
        """
        request = self.request_key()
        if self.is_dry_run:
            request = None  # There is no effect to repeat.

        def effect(tx: Tx) -> Answer:
            answer = show(tx, op(tx, *args, **kwargs))
            if self.is_dry_run:
                raise _DryRun(answer)
            return answer

        try:
            if request is None:
                return await self.services.transact(effect)
            services = self.services
            with services.room.request():
                future = services.store.submit(request_keys.once, request, lambda tx: _kept(effect(tx)))
                done = await services.answer_of(future, has_key=True)
        except _DryRun as dry:
            return dry.answer
        return done if isinstance(done, Answer) else _replayed(done, request)

    async def read_body(self, most: int) -> bytes:
        """All of the body. It is part of the digest of an Idempotency-Key."""
        self._raw_body = await body.whole(self.receive, self.headers, most, self.held.add)
        return self._raw_body

    @property
    def raw_body(self) -> bytes:
        """The body as it came, once it was read. A PATCH needs it: in it null and absent differ."""
        return self._raw_body

    def body_pieces(self, gap_s: float) -> AsyncIterator[bytes]:
        """The body as it comes, for bodies without end."""
        return body.pieces(self.receive, self.headers, gap_s)

    def request_key(self) -> RequestKey | None:
        """The Idempotency-Key of a POST."""
        key = self.checked_key()
        if key is None:
            return None
        return RequestKey(self.namespace, self.grant.actor, f"POST {self.url}", key, self.digest(self._raw_body))

    def checked_key(self) -> str | None:
        """Refuses a malformed Idempotency-Key of a POST. A dry run ignores the key, but not a malformed one."""
        given = self.headers.get("idempotency-key")
        if given is None or self.route.method != "POST":
            return None
        found = _KEY.fullmatch(given)
        if found is None:
            raise Problem("bad_header", "an Idempotency-Key has 1 to 255 printable ASCII characters without spaces")
        return found[1]

    def digest(self, data: bytes) -> str:
        """Hash of the query string and `data` (the body or part of it). A repeated request with the same
        Idempotency-Key must have the same hash."""
        return hashlib.sha256(self.raw_query + b"\n" + data).hexdigest()


class _DryRun(Exception):
    """Rolls back the transaction of a dry run."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def _kept(answer: Answer) -> tuple[Answer, Kept]:
    """The answer as it is kept for repeated requests: without its secret, which is null in them."""
    headers = {name: value for name, value in answer.headers.items() if name in _KEPT_HEADERS}
    text = answer.body or b""
    if answer.is_secret:
        text = msgspec.json.encode({**msgspec.json.decode(text), "secret": None})
    return answer, Kept("", answer.status, msgspec.json.encode(headers).decode(), text.decode())


def _replayed(kept: Kept, request: RequestKey) -> Answer:
    if kept.digest != request.digest:
        raise Problem(
            "key_reused", f"the Idempotency-Key {request.key!r} was used for another request: choose a new key"
        )
    headers = msgspec.json.decode(kept.headers, type=dict[str, str])
    return Answer(
        status=kept.status, body=kept.answer.encode() or None, headers={**headers, "Idempotency-Replayed": "true"}
    )
