"""Signed requests: a receiver that has the key can tell that a request came from here, is unchanged and is not old.

The signature is the HMAC-SHA256 of this text, in hexadecimal digits:

    POST                                          the method
    /orders/7?full=1                              the path with its query, as it was sent
    idempotency-key:0197a3c2-…                    `Idempotency-Key` and every `X-Rota-…` header but the signature,
    x-rota-attempt:1                              as name:value, the names in lower case and sorted, no spaces around
    x-rota-fence:1                                the value
    x-rota-job:shop.settle
    x-rota-timestamp:1790000000
                                                  an empty line
    {"order": 7}                                  the body

Receivers written in Python may call `verify`; others do the same in a few lines.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from rota.clock import MACHINE, Clock
from rota.domain.instant import MICROSECONDS

TIMESTAMP = "X-Rota-Timestamp"
SIGNATURE = "X-Rota-Signature"
IDEMPOTENCY_KEY = "Idempotency-Key"
VERSION = "v1"
_OURS = "x-rota-"


def sign(
    method: str, target: str, headers: Mapping[str, str], body: bytes, key: bytes, timestamp: int
) -> dict[str, str]:
    """The headers that sign a request with `headers` at `timestamp` (seconds since 1970 UTC)."""
    added = {TIMESTAMP: str(timestamp)}
    return {**added, SIGNATURE: f"{VERSION}={_digest(method, target, _covered({**headers, **added}), body, key)}"}


def verify(
    headers: Mapping[str, str],
    method: str,
    target: str,
    body: bytes,
    key: bytes,
    tolerance_s: float = 300,
    *,
    clock: Clock | None = None,
) -> bool:
    """Whether a request was signed with `key`, is unchanged, and was signed not longer than `tolerance_s` ago."""
    covered = _covered(headers)
    given = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = given.get(TIMESTAMP.lower(), ""), given.get(SIGNATURE.lower(), "")
    version, _, digest = signature.partition("=")
    if version != VERSION or not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15):
        return False
    expected = _digest(method, target, covered, body, key)
    if not hmac.compare_digest(expected.encode(), digest.encode(errors="replace")):
        return False
    return abs((clock or MACHINE).now() / MICROSECONDS - int(timestamp)) <= tolerance_s


def _covered(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that a signature covers, by name in lower case."""
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    return {
        name: value
        for name, value in lower.items()
        if name == IDEMPOTENCY_KEY.lower() or (name.startswith(_OURS) and name != SIGNATURE.lower())
    }


def _digest(method: str, target: str, covered: Mapping[str, str], body: bytes, key: bytes) -> str:
    lines = [method, target, *(f"{name}:{covered[name]}" for name in sorted(covered)), "", ""]
    return hmac.new(key, "\n".join(lines).encode(errors="replace") + body, hashlib.sha256).hexdigest()
