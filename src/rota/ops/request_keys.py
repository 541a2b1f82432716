"""Idempotent requests of the HTTP API: one transaction writes the key and has the effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from rota.ops import keys
from rota.store.port import Tx

MOST_BYTES = 16 * 1024
"""A longer answer is not kept: a repeated request then gets its status, its headers and `TOO_LONG`."""
TOO_LONG = '{"detail": "the request succeeded before, and its answer was too long to be kept: read it at its Location"}'
T = TypeVar("T")


class RequestKey(msgspec.Struct, frozen=True):
    """An Idempotency-Key. `route` is method and path, `digest` the hash of query and body."""

    namespace: str
    actor: str
    route: str
    key: str
    digest: str


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """The stored answer to a request. `headers` is a JSON object."""

    digest: str
    status: int
    headers: str
    answer: str


def once(tx: Tx, request: RequestKey, effect: Callable[[Tx], tuple[T, Kept]]) -> T | Kept:
    """The value of the effect; or, if a request with this key has succeeded before, what it was answered with."""
    named = {name: getattr(request, name) for name in ("namespace", "actor", "route", "key")}
    keys.lock_request(tx, request.namespace, f"{request.actor} {request.route}", request.key)
    if not tx.changed("take_request_key", **named, digest=request.digest):
        (found,) = tx.records("request_key", Kept, **named)
        return found
    value, kept = effect(tx)
    answer = kept.answer if len(kept.answer.encode()) <= MOST_BYTES else TOO_LONG
    tx.run("answer_request_key", **named, status=kept.status, headers=kept.headers, answer=answer)
    return value
