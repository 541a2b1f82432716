"""A browser's sign-in: a token is traded for a cookie that scripts cannot read."""

from __future__ import annotations

import msgspec

from rota.api import auth
from rota.api.answer import Answer, no_content, shown
from rota.api.call import Call
from rota.api.problem import Problem
from rota.api.resources.system import Me, who
from rota.api.route import Access, NoQuery, route
from rota.domain import token
from rota.ops import tokens
from rota.store.access_reader import LONGEST_S

BITS = 256


class SignIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The token to sign in with."""

    token: str
    """The token that is traded for a cookie."""


@route(
    "POST /session",
    Access.OPEN,
    answer=Me,
    status=201,
    codes=("bad_token", "expired_token", "revoked_token"),
    example={"token": "rota_…"},
)
async def sign_in(call: Call, query: NoQuery, body: SignIn) -> Answer:
    """Signs a browser in: trades a token for a cookie."""
    grant = await call.services.grant_of({"authorization": f"Bearer {body.token}"}, call.address)
    if grant.token_id is None:
        raise Problem("bad_token", "this token is not known here")
    secret = f"{call.services.clock.secret_bits(BITS):064x}"
    await call.services.transact(tokens.sign_in, grant.token_id, token.digest(secret))
    namespace = grant.first_namespace(call.services.settings.namespace)
    headers = {"Set-Cookie": _cookie(call, secret, LONGEST_S)}
    return shown(await who(call, grant, namespace), 201, headers=headers, is_secret=True)


@route("GET /session", Access.ANY, answer=Me)
async def get(call: Call, query: NoQuery) -> Answer:
    """The caller of this request and its rights."""
    return shown(await who(call, call.grant, call.namespace))


@route("DELETE /session", Access.OPEN, status=204)
async def sign_out(call: Call, query: NoQuery) -> Answer:
    """Signs the browser out."""
    secret = auth.session_of(call.headers)
    if secret is not None:
        await call.services.transact(tokens.sign_out, token.digest(secret))
        call.services.forget_grants()
    return Answer(status=no_content().status, headers={"Set-Cookie": _cookie(call, "", 0)})


def _cookie(call: Call, value: str, seconds: int) -> str:
    """Over plain HTTP, which is only for loopback, a cookie cannot be `Secure` and so not have the prefix __Host-."""
    name, secure = (auth.COOKIE, "; Secure") if call.is_https else (auth.LOCAL_COOKIE, "")
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
