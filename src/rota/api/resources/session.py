"""A browser's sign-in: a token is traded for a cookie that scripts cannot read."""

from __future__ import annotations

import msgspec

from rota.api import auth
from rota.api.answer import Answer, no_content, shown
from rota.api.call import Call
from rota.api.problem import Problem
from rota.api.resources.system import Me, who
from rota.api.route import Access, NoQuery, Route
from rota.domain import token
from rota.ops import tokens
from rota.store.access_reader import LONGEST_S

BITS = 256


class SignIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The token to sign in with."""

    token: str
    """The token that is traded for a cookie."""


async def sign_in(call: Call, query: NoQuery, body: SignIn) -> Answer:
    grant = await call.services.grant_of({"authorization": f"Bearer {body.token}"}, call.address)
    if grant.token_id is None:
        raise Problem("bad_token", "this token is not known here")
    secret = f"{call.services.clock.secret_bits(BITS):064x}"
    await call.services.transact(tokens.sign_in, grant.token_id, token.digest(secret))
    namespace = grant.first_namespace(call.services.settings.namespace)
    headers = {"Set-Cookie": _cookie(call, secret, LONGEST_S)}
    return shown(await who(call, grant, namespace), 201, headers=headers, is_secret=True)


async def get(call: Call, query: NoQuery) -> Answer:
    return shown(await who(call, call.grant, call.namespace))


async def sign_out(call: Call, query: NoQuery) -> Answer:
    secret = auth.session_of(call.headers)
    if secret is not None:
        await call.services.transact(tokens.sign_out, token.digest(secret))
        call.services.forget_grants()
    return Answer(status=no_content().status, headers={"Set-Cookie": _cookie(call, "", 0)})


def _cookie(call: Call, value: str, seconds: int) -> str:
    """Over plain HTTP, which is only for loopback, a cookie cannot be `Secure` and so not have the prefix __Host-."""
    name, secure = (auth.COOKIE, "; Secure") if call.is_https else (auth.LOCAL_COOKIE, "")
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


ROUTES = [
    Route(
        method="POST",
        path="/session",
        needs=Access.OPEN,
        handler=sign_in,
        summary="Signs a browser in: trades a token for a cookie.",
        body=SignIn,
        answer=Me,
        status=201,
        codes=("bad_token", "expired_token", "revoked_token", "too_many_requests"),
        example={"token": "rota_…"},
    ),
    Route(
        method="GET",
        path="/session",
        needs=Access.ANY,
        handler=get,
        summary="The caller of this request and its rights.",
        answer=Me,
    ),
    Route(
        method="DELETE",
        path="/session",
        needs=Access.OPEN,
        handler=sign_out,
        summary="Signs the browser out.",
        status=204,
    ),
]
