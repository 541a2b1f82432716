"""Reads tokens and sessions of the HTTP API."""

from __future__ import annotations

import msgspec

from rota.domain.access import Grant, Role, Scope
from rota.domain.decoding import prepare
from rota.domain.instant import MICROSECONDS
from rota.store.port import View

prepare(list[Scope])
IDLE_S = 12 * 3600
"""A session ends after this time without a request,"""
LONGEST_S = 7 * 86400
"""… and after this time in any case."""


class TokenRow(msgspec.Struct, frozen=True, array_like=True):
    """A token without its secret. Lists are JSON. `old_until` is when the secret before the last rotation ends."""

    id: str
    namespace: str
    name: str
    role: str | None
    scopes: str
    namespaces: str
    groups: str
    only_queues: str | None
    only_jobs: str | None
    ending: str
    created_at: int
    created_by: str
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None
    revoked_by: str | None
    old_until: int | None


def token_of(view: View, digest: str) -> TokenRow | None:
    """The token with this secret. The secret from before a rotation also finds it, and is valid until `old_until`."""
    return next(iter(view.records("token_by_digest", TokenRow, digest=digest)), None)


def token_of_session(view: View, digest: str) -> TokenRow | None:
    """The token of a session that has not ended."""
    bounds = {"used_after": view.now - IDLE_S * MICROSECONDS, "created_after": view.now - LONGEST_S * MICROSECONDS}
    return next(iter(view.records("token_of_session", TokenRow, digest=digest, **bounds)), None)


def tokens(view: View, namespace: str) -> list[TokenRow]:
    """The oldest first."""
    return view.records("tokens", TokenRow, namespace=namespace)


def token(view: View, namespace: str, id: str) -> TokenRow | None:
    return next(iter(view.records("token", TokenRow, namespace=namespace, id=id)), None)


def has_tokens(view: View) -> bool:
    """Whether a token was ever made: from then on every caller needs one."""
    return view.one("has_tokens") is not None


def grant(row: TokenRow, kind: str = "token") -> Grant:
    """The rights of the holder of a token. `kind` says how it was shown: as a token, or by a session."""
    return Grant(
        actor=f"{kind}:{row.name}",
        scopes=frozenset(msgspec.json.decode(row.scopes, type=list[Scope])),
        namespaces=tuple(msgspec.json.decode(row.namespaces, type=list[str])),
        role=None if row.role is None else Role(row.role),
        groups=tuple(msgspec.json.decode(row.groups, type=list[str])),
        queues=_listed(row.only_queues),
        jobs=_listed(row.only_jobs),
        token_id=row.id,
        expires_at=row.expires_at,
    )


def _listed(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(msgspec.json.decode(text, type=list[str]))
