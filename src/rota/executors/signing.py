"""Signed requests: who has the key can tell that a request came from here, is whole and is not old.

The signature covers the timestamp, the method, the target and the body, each behind a line break but the first, where
the target is the path with its query, as it was sent.
Receivers written in Python may call `verify`; others do the same in a few lines.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from rota.clock import MICROSECONDS, Clock, SystemClock

TIMESTAMP = "X-Rota-Timestamp"
SIGNATURE = "X-Rota-Signature"
VERSION = "v1"
_clock = SystemClock()


def sign(method: str, target: str, body: bytes, key: bytes, timestamp: int) -> dict[str, str]:
    """The headers that a request signed at `timestamp` (seconds since 1970 UTC) carries."""
    return {TIMESTAMP: str(timestamp), SIGNATURE: f"{VERSION}={_digest(method, target, body, key, str(timestamp))}"}


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
    given = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = given.get(TIMESTAMP.lower(), ""), given.get(SIGNATURE.lower(), "")
    version, _, digest = signature.partition("=")
    if version != VERSION or not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15):
        return False
    if not hmac.compare_digest(_digest(method, target, body, key, timestamp).encode(), digest.encode(errors="replace")):
        return False
    return abs((clock or _clock).now() / MICROSECONDS - int(timestamp)) <= tolerance_s


def _digest(method: str, target: str, body: bytes, key: bytes, timestamp: str) -> str:
    return hmac.new(
        key, f"{timestamp}\n{method}\n{target}\n".encode(errors="replace") + body, hashlib.sha256
    ).hexdigest()
