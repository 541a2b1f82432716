"""Callbacks: a request whose URL and content come from an execution's arguments, signed with the key of a namespace.

Only Rota itself defines such a job. The definition names the namespace, so that no caller can have a request signed
with the key of another one. Workers have one secret in `ROTA_CALLBACK_SECRET`; the key of a namespace is derived from
it, so that a tenant who knows its own key can check its callbacks and forge none for others.
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec

from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.decoding import prepare
from rota.domain.errors import ArgumentsError
from rota.domain.lifecycle import Rules
from rota.executors.http import address
from rota.executors.http.request import Call, HttpExecutor, Request, about_execution
from rota.executors.reference import Secrets

SECRET = "ROTA_CALLBACK_SECRET"


class CallbackJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The target of the job that calls back."""

    callback_of: str
    """The namespace whose key signs the requests."""


prepare(CallbackJob)


def key(secret: str, namespace: str) -> str:
    """The key of a namespace: `printf 'callback NAMESPACE' | openssl dgst -sha256 -hmac "$ROTA_CALLBACK_SECRET"`."""
    return hmac.new(secret.encode(), f"callback {namespace}".encode(), hashlib.sha256).hexdigest()


class CallbackExecutor(HttpExecutor):
    """Redirects are not followed: the receiver is the URL that the caller gave."""

    def __init__(self, about: CallbackJob, rules: Rules, *, max_result_bytes: int = payload.MOST_BYTES) -> None:
        super().__init__(_TEMPLATE, rules, max_result_bytes=max_result_bytes)
        self._namespace = about.callback_of

    def _call(self, claim: Claim, secrets: Secrets) -> Call:
        arguments = payload.decode(claim.arguments, "the arguments")
        if not isinstance(arguments, dict) or not isinstance(arguments.get("url"), str):
            raise ArgumentsError("the arguments of a callback must have a url")
        url = address.parsed(arguments["url"])
        body = msgspec.json.encode(arguments.get("told"))
        assert self._key is not None, "a callback is always signed"
        signing_key = key(secrets[self._key], self._namespace).encode()
        kind = {"Content-Type": "application/json"}
        return Call("POST", url, body, kind, about_execution(claim), {}, signing_key)


_TEMPLATE = Request(
    url="https://callback.invalid/", secret=SECRET, follow_redirects=0, max_response_bytes=16 * 1024, timeout_s=25.0
)
"""The URL of each request comes from the arguments."""
