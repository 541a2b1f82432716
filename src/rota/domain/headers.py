"""Headers of an execution: free texts by name, which executions that its job enqueues inherit."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rota.domain import payload, unique
from rota.domain.errors import DefinitionError

MOST_BYTES = 16 * 1024
_decode = msgspec.json.Decoder(dict[str, str]).decode


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Refuses headers that are not texts by name, or too long together."""
    if not isinstance(headers, Mapping):
        raise DefinitionError(f"headers must be a dictionary of texts, not {str(headers)[:64]!r}")
    for name, value in headers.items():
        unique.check_key(name, "a header's name")
        if not isinstance(value, str) or "\0" in value or not payload.is_unicode(value):
            raise DefinitionError(f"the header {name!r} must be a text without NUL, not {str(value)[:64]!r}")
    if (size := len(msgspec.json.encode(dict(headers)))) > MOST_BYTES:
        raise DefinitionError(f"headers take at most {MOST_BYTES:,} bytes of JSON, not {size:,}")
    return dict(headers)


def encode(headers: Mapping[str, str]) -> str | None:
    """The stored JSON; None without headers."""
    return msgspec.json.encode(dict(headers)).decode() if headers else None


def decode(text: str | None) -> dict[str, str]:
    return {} if text is None else _decode(text)
