"""Tokens: who may call this API, and what each caller may do."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from rota.api import listing, problem
from rota.api.answer import Answer, created, no_content, shown
from rota.api.call import Call
from rota.api.problem import Problem
from rota.api.query import Page
from rota.api.route import BASE, NoQuery, route
from rota.domain import access, duration
from rota.domain import token as texts
from rota.domain.access import Grant, Role, Scope
from rota.domain.instant import MICROSECONDS, instant
from rota.ids import is_id
from rota.ops import tokens as ops
from rota.store import access_reader
from rota.store.access_reader import TokenRow
from rota.store.port import Tx, View
from rota.views import token as views
from rota.views.token import NewToken, Token

DEFAULT_S = 90 * 86400

Duration = float | str

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class OnlyIn(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The queues and jobs that a token is limited to."""

    queues: list[str] | None = None
    jobs: list[str] | None = None
    """The jobs, by name; null for all."""


class TokenIn(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new token: a role, or scopes. It is valid for 90 days unless `expiresAt` or `expiresIn` say otherwise."""

    name: str
    role: Role | None = None
    scopes: list[Scope] | None = None
    namespaces: list[str] | None = None
    groups: list[str] | None = None
    """The groups that approvals may ask by name."""
    only: OnlyIn | None = None
    expires_at: Moment | None = None
    expires_in: Duration | None = None
    """After how long it ends, such as `30d`."""


class TokenChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What can be changed of a token: rights cannot; make another token for them."""

    name: str | None = None
    expires_at: Moment | None = None


class RotateIn(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """`overlap` is how long the old secret stays valid."""

    overlap: Annotated[Duration, msgspec.Meta(description="A duration: seconds, or text such as 1h.")] = 0


_EXAMPLE = {"name": "reports", "role": "viewer"}


@route("GET /tokens", Scope.ADMIN, answer=listing.of(Token))
async def list_tokens(call: Call, query: Page) -> Answer:
    """The tokens of the namespace, newest first."""
    found = await call.read(views.tokens, call.namespace)
    return listing.of_all(call, query, Token, found, lambda one: [one.token_id])


@route(
    "POST /tokens",
    Scope.ADMIN,
    answer=NewToken,
    status=201,
    codes=("exceeds_own_rights", "name_taken", "quota_exceeded", "bad_definition"),
    example=_EXAMPLE,
)
async def create(call: Call, query: NoQuery, body: TokenIn) -> Answer:
    """Makes a token. Its secret is in this answer and nowhere else."""
    grant = _grant(body, call.namespace)
    text = texts.written(
        call.services.clock.secret_bits(texts.SECRET_BITS),
        texts.WORKER_PREFIX if grant.scopes == {Scope.WORK} else texts.PREFIX,
    )
    wanted = ops.TokenToMake(id=call.services.ids.new(), text=text, grant=grant, expires_at=_expiry(body, call))

    def show(tx: Tx, row: TokenRow) -> Answer:
        shape = views.new_token(row, tx.now, text)
        return created(shape, f"{BASE}/tokens/{row.id}", is_secret=True)

    own = msgspec.structs.replace(call.grant, actor=call.actor)
    answer = await call.act(show, ops.make, call.namespace, wanted, own)
    call.services.forget_grants()
    return answer


@route("GET /tokens/{token}", Scope.ADMIN, answer=Token)
async def get(call: Call, query: NoQuery) -> Answer:
    """One token, without its secret."""

    def read(view: View) -> Token:
        row = access_reader.token(view, call.namespace, _id(call))
        if row is None:
            raise problem.not_found()
        return views.token(row, view.now)

    return shown(await call.read(read))


@route(
    "PATCH /tokens/{token}", Scope.ADMIN, answer=Token, codes=("conflict", "name_taken"), example={"name": "reports-2"}
)
async def change(call: Call, query: NoQuery, body: TokenChange) -> Answer:
    """Changes the name or the end of a token."""

    def apply(tx: Tx) -> TokenRow:
        known = ops.known(tx, call.namespace, _id(call))
        until = known.expires_at if body.expires_at is None else instant(body.expires_at)
        return ops.change(tx, call.namespace, known.id, body.name or known.name, until, call.actor)

    answer = await call.act(lambda tx, row: shown(views.token(row, tx.now)), apply)
    call.services.forget_grants()
    return answer


@route("DELETE /tokens/{token}", Scope.ADMIN, status=204)
async def revoke(call: Call, query: NoQuery) -> Answer:
    """Revokes a token and ends its sessions and streams. The row stays."""
    answer = await call.act(lambda tx, _: no_content(), ops.revoke, call.namespace, _id(call), call.actor)
    call.services.forget_grants()
    return answer


@route("POST /tokens/{token}/rotate", Scope.ADMIN, answer=NewToken, codes=("conflict",), example={"overlap": "1h"})
async def rotate(call: Call, query: NoQuery, body: RotateIn | None) -> Answer:
    """Gives a token a new secret; the old one stays valid for `overlap`."""
    overlap_s = duration.seconds((body or RotateIn()).overlap, "overlap")
    text = texts.written(call.services.clock.secret_bits(texts.SECRET_BITS))

    def show(tx: Tx, row: TokenRow) -> Answer:
        return shown(views.new_token(row, tx.now, text), is_secret=True)

    answer = await call.act(show, ops.rotate, call.namespace, _id(call), text, overlap_s, call.actor)
    call.services.forget_grants()
    return answer


def _id(call: Call) -> str:
    if not is_id(call.path["token"]):
        raise problem.not_found()
    return call.path["token"]


def _grant(body: TokenIn, namespace: str) -> Grant:
    if (body.role is None) == (body.scopes is None):
        raise Problem("bad_field", "a token has a role or scopes: give one of them")
    scopes = access.SCOPES[body.role] if body.role is not None else tuple(body.scopes or ())
    only = body.only or OnlyIn()
    return Grant(
        actor=body.name,
        scopes=frozenset(scopes),
        namespaces=tuple(body.namespaces or (namespace,)),
        role=body.role,
        groups=tuple(body.groups or ()),
        queues=None if only.queues is None else tuple(only.queues),
        jobs=None if only.jobs is None else tuple(only.jobs),
    )


def _expiry(body: TokenIn, call: Call) -> int:
    if body.expires_at is not None and body.expires_in is not None:
        raise Problem("bad_field", "give expiresAt or expiresIn, not both")
    if body.expires_at is not None:
        return instant(body.expires_at)
    wanted_s = DEFAULT_S if body.expires_in is None else duration.positive_seconds(body.expires_in, "expiresIn")
    return call.services.clock.now() + round(wanted_s * MICROSECONDS)
