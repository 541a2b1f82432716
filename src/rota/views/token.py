"""A token of the HTTP API, without its secret."""

from __future__ import annotations

from datetime import datetime

from rota.store import access_reader
from rota.store.access_reader import TokenRow
from rota.store.port import View
from rota.views.shape import Shape, shaped


class Only(Shape, frozen=True):
    """The queues and jobs that a token is limited to; null is all of them."""

    queues: list[str] | None
    jobs: list[str] | None
    """The jobs, by name; null for all."""


class Token(Shape, frozen=True):
    """`ending` are the last four characters of its text. `state` is active, expired or revoked."""

    token_id: str
    """The id of the token."""
    name: str
    state: str
    """`active`, `expired` or `revoked`."""
    role: str | None
    scopes: list[str]
    namespaces: list[str]
    groups: list[str]
    """The groups of its holder, which approvals may ask by name."""
    only: Only
    """The queues and jobs that the token is limited to."""
    ending: str
    """The last four characters of the token."""
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    """When it expires; null for never."""
    last_used_at: datetime | None
    """When it was last used, to the minute; null if it never was."""
    revoked_at: datetime | None
    """When it was revoked; null if it was not."""
    revoked_by: str | None
    """The caller that revoked it; null if it was not."""
    old_secret_until: datetime | None


class NewToken(Token, frozen=True):
    """`secret` is the text of the token, which is shown only once; None in the answer to a repeated request."""

    secret: str | None


def tokens(view: View, namespace: str) -> list[Token]:
    """The oldest first; revoked ones, too."""
    return [token(row, view.now) for row in access_reader.tokens(view, namespace)]


def token(row: TokenRow, now: int) -> Token:
    return shaped(Token, row, **_members(row, now))


def new_token(row: TokenRow, now: int, secret: str) -> NewToken:
    return shaped(NewToken, row, secret=secret, **_members(row, now))


def _members(row: TokenRow, now: int) -> dict[str, object]:
    grant = access_reader.grant(row)
    is_over = row.expires_at is not None and row.expires_at <= now
    return {
        "token_id": row.id,
        "state": "revoked" if row.revoked_at is not None else "expired" if is_over else "active",
        "scopes": sorted(grant.scopes),
        "namespaces": list(grant.namespaces),
        "groups": list(grant.groups),
        "only": Only(queues=_listed(grant.queues), jobs=_listed(grant.jobs)),
        "old_secret_until": row.old_until if row.old_until is not None and row.old_until > now else None,
    }


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)
