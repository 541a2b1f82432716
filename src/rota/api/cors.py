"""Pages of other origins that the setting `cors_origins` names. They may send tokens, but no cookies."""

from __future__ import annotations

from collections.abc import Mapping

from rota.api.answer import Answer
from rota.api.http_protocol import ALLOWED
from rota.api.services import Exposure

_SENT = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Rota-Namespace, X-Request-Id"
)
_SHOWN = "ETag, Idempotency-Replayed, Location, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
REMEMBERED_S = 600


def preflight(method: str, headers: Mapping[str, str], exposure: Exposure) -> Answer | None:
    """The answer to the question of a browser whether a page may send a request; None if it is another request."""
    if method != "OPTIONS" or "access-control-request-method" not in headers or not _is_listed(headers, exposure):
        return None
    about = {
        "Access-Control-Allow-Origin": headers["origin"],
        "Access-Control-Allow-Methods": ALLOWED,
        "Access-Control-Allow-Headers": _SENT,
        "Access-Control-Max-Age": str(REMEMBERED_S),
        "Vary": "Origin",
    }
    return Answer(status=204, headers=about)


def headers_for(headers: Mapping[str, str], exposure: Exposure) -> dict[str, str]:
    """What an answer needs so that a page of a listed origin can read it."""
    if "authorization" not in headers or not _is_listed(headers, exposure):
        return {}
    return {
        "Access-Control-Allow-Origin": headers["origin"],
        "Access-Control-Expose-Headers": _SHOWN,
        "Vary": "Origin",
    }


def _is_listed(headers: Mapping[str, str], exposure: Exposure) -> bool:
    return bool(exposure.cors_origins) and headers.get("origin") in exposure.cors_origins
