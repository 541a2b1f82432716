"""Who calls: a token in the header Authorization, a browser's session, or every caller of a server without tokens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import msgspec

from rota.api.problem import Problem
from rota.api.services import Services
from rota.domain import access, token
from rota.domain.access import Grant
from rota.domain.errors import RotaError
from rota.ops import tokens
from rota.store import access_reader
from rota.store.access_reader import TokenRow
from rota.store.port import View

REMEMBERED_S = 5.0
"""How long a server relies on what it knows of a token. A revocation holds everywhere after this time."""
USE_EVERY_S = 60.0
USES_OF_S = 1.0
MOST_REMEMBERED = 10_000
MOST_REFUSED = 20
"""Refused credentials of one address in a minute; further ones get 429."""
COOKIE, LOCAL_COOKIE = "__Host-rota", "rota_session"
log = logging.getLogger("rota.api")


class _Verdict(msgspec.Struct, frozen=True):
    row: TokenRow | None
    checked_at: float


class Authenticator:
    """Remembers verdicts for a few seconds, so that an enqueue costs no read."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._verdicts: dict[str, _Verdict] = {}
        self._has_tokens = False
        self._looked_at = float("-inf")
        self._look: asyncio.Task[None] | None = None
        self._refused: dict[str, list[float]] = {}
        self._used: dict[str, float] = {}
        self._uses: dict[str, tuple[str, int]] = {}
        """Uses that are not written yet: by digest, the id of the token and the time."""

    async def is_open(self) -> bool:
        """Whether every caller may do everything: no token was ever made, or `--no-auth` was given."""
        if self._services.exposure.is_auth_off:
            return True
        now = self._services.clock.monotonic()
        if not self._has_tokens and now - self._looked_at >= REMEMBERED_S:
            # Open streams ask once a second, all at the same time: they share one read.
            if self._look is None:
                self._look = asyncio.ensure_future(self._look_for_tokens(now))
            await asyncio.shield(self._look)
        return not self._has_tokens

    async def _look_for_tokens(self, now: float) -> None:
        this = asyncio.current_task()
        try:
            has_tokens = await self._services.read(access_reader.has_tokens)
            self._has_tokens = self._has_tokens or has_tokens
            if self._look is this:  # Else a change was made meanwhile, which this read may have missed.
                self._looked_at = now
        finally:
            if self._look is this:
                self._look = None

    async def caller(self, headers: Mapping[str, str], address: str) -> Grant:
        """The rights of the caller of a request, or a problem with a status of 401."""
        authorization, session = headers.get("authorization"), session_of(headers)
        if authorization is not None and session is not None:
            raise Problem("two_credentials", "send a token or a session's cookie, not both")
        if authorization is None and session is None:
            if await self.is_open():
                return access.LOCAL
            raise Problem("no_token", "this server needs a token: send Authorization: Bearer rota_…")
        try:
            if authorization is not None:
                return await self._of_token(_bearer(authorization))
            return await self._of_session(session or "")
        except Problem:
            self._count_refusal(address)
            raise

    def forget(self) -> None:
        """After a change of tokens on this server, or a hint of one elsewhere."""
        self._verdicts.clear()
        self._looked_at, self._look = float("-inf"), None

    async def _of_token(self, text: str) -> Grant:
        if not token.is_token(text):
            raise Problem("bad_token", "the token is malformed or mistyped: its checksum is wrong")
        row = await self._row(token.digest(text), access_reader.token_of)
        if row is None:
            raise Problem("bad_token", "this token is not known here")
        return self._grant(row, "token")

    async def _of_session(self, text: str) -> Grant:
        row = await self._row(token.digest(text), access_reader.token_of_session)
        if row is None:
            raise Problem("bad_token", "the session has ended: sign in again")
        return self._grant(row, "session")

    async def _row(self, digest: str, query: Callable[[View, str], TokenRow | None]) -> TokenRow | None:
        now = self._services.clock.monotonic()
        known = self._verdicts.get(digest)
        if known is None or now - known.checked_at >= REMEMBERED_S:
            known = _Verdict(await self._services.read(query, digest), now)
            if len(self._verdicts) >= MOST_REMEMBERED:
                self._verdicts.clear()
            self._verdicts[digest] = known
            self._note_use(digest, known.row, now)
        return known.row

    def _grant(self, row: TokenRow, kind: str) -> Grant:
        now = self._services.clock.now()
        if row.revoked_at is not None:
            raise Problem("revoked_token", f"the token {row.name} was revoked")
        if row.expires_at is not None and row.expires_at <= now:
            raise Problem("expired_token", f"the token {row.name} has expired: rotate it, or make another one")
        if row.old_until is not None and row.old_until <= now:
            raise Problem("bad_token", f"the token {row.name} has a new secret since its rotation")
        return access_reader.grant(row, kind)

    def _note_use(self, digest: str, row: TokenRow | None, now: float) -> None:
        if row is None or now - self._used.get(digest, float("-inf")) < USE_EVERY_S:
            return
        if len(self._used) >= MOST_REMEMBERED:
            self._used.clear()
        self._used[digest] = now
        if not self._uses:
            self._services.in_background(self._write_uses())
        self._uses[digest] = (row.id, self._services.clock.now())

    async def _write_uses(self) -> None:
        """The uses of one second in one transaction, for which no request waits."""
        await asyncio.sleep(USES_OF_S)
        uses, self._uses = self._uses, {}
        of_sessions = [(digest, at) for digest, (_, at) in uses.items()]
        try:
            await self._services.transact(tokens.note_uses, list(dict(uses.values()).items()), of_sessions)
        except (RotaError, Problem) as error:
            log.info("the uses of %d tokens were not written: %s", len(uses), error)

    def _count_refusal(self, address: str) -> None:
        now = self._services.clock.monotonic()
        recent = [at for at in self._refused.get(address, ()) if at > now - 60]
        if len(self._refused) >= MOST_REMEMBERED:
            self._refused.clear()
        self._refused[address] = [*recent[-MOST_REFUSED:], now]
        if len(recent) >= MOST_REFUSED:
            raise Problem("too_many_requests", "too many refused credentials from this address", retry_after=60)


def session_of(headers: Mapping[str, str]) -> str | None:
    """The session in a cookie, if there is one."""
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name in (COOKIE, LOCAL_COOKIE) and value:
            return value
    return None


def _bearer(header: str) -> str:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise Problem("bad_token", "send Authorization: Bearer rota_…")
    return text
