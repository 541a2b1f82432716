"""The addresses of hooks: a request that proves where it comes from becomes an event."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from rota.api import body as bodies
from rota.api import problem
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.problem import Problem
from rota.api.quotas import QuotaKeeper
from rota.api.route import Access, NoQuery, route
from rota.domain import hook, payload
from rota.domain.hook import NoRequestId
from rota.ops.events.emit import Emission, EmitHeader, emit
from rota.store import hook_reader
from rota.store.hook_reader import SecretRow
from rota.views.shape import Shape

FORM = "application/x-www-form-urlencoded"

MOST_FIELDS = 1000

_KEY = re.compile(rf"[0-9a-f]{{{hook.KEY_BITS // 4}}}", re.ASCII)

_SAME = "hook"
"""The digest of every event of a hook: a repeated request is the same, even if the sender wrote its body anew."""


class Received(Shape, frozen=True):
    """The event that the request has become, now or before."""

    event_id: str


@route(
    "POST /in/{key}",
    Access.OPEN,
    raw_body=("application/json", FORM),
    answer=Received,
    status=202,
    codes=("bad_signature", "bad_arguments"),
)
async def receive(call: Call, query: NoQuery) -> Answer:
    """The address of a hook: a request with the right signature becomes an event.

    The signature is checked before anything in the body is looked at.
    """
    key = call.path["key"]
    row = await call.read(hook_reader.of_key, key) if _KEY.fullmatch(key) else None
    if row is None:
        raise problem.not_found()
    most = await call.services.part(QuotaKeeper).most_payload_bytes(row.namespace)
    data = await call.read_body(most + bodies.ROOM_BESIDE_PAYLOAD)
    now = call.services.clock.now()
    if refused := hook.refusal(row.rules, row.secrets(now), call.headers, data, now):
        raise Problem("bad_signature", refused)
    text, value = _content(call, data)
    emission = Emission(
        call.services.ids.new(),
        row.event,
        payload.encode(text, "the body", most),
        "",
        _event_key(call, row, value),
        _SAME,
    )
    header = EmitHeader(row.namespace, f"hook:{row.name}")
    (accepted,) = await call.services.transact(emit, header, [emission])
    return shown(Received(accepted.id), 202 if accepted.created else 200)


def _content(call: Call, data: bytes) -> tuple[Any, Any]:
    """The body as the payload of an event, and as values. JSON keeps its text."""
    media = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media == FORM:
        value = _form(data)
        return value, value
    if media != "application/json" and not media.endswith("+json"):
        bodies.check_media(call.headers, ("application/json", FORM))
    bodies.check_json(data)
    return msgspec.Raw(data), msgspec.json.decode(data)


def _form(data: bytes) -> dict[str, str]:
    """The fields of a form; of a repeated one the last."""
    try:
        found = dict(parse_qsl(data.decode("ascii"), True, True, errors="strict", max_num_fields=MOST_FIELDS))
    except (ValueError, UnicodeError):
        raise Problem("bad_body", "the body is no form, although Content-Type says so") from None
    if any("\x00" in text for pair in found.items() for text in pair):
        raise Problem("bad_body", "the form has a NUL character, which databases cannot store")
    return found


def _event_key(call: Call, row: SecretRow, value: Any) -> str | None:
    """With the id of the hook, so that the ids of two senders cannot meet."""
    try:
        id = hook.request_id(row.rules, call.headers, value)
    except NoRequestId as error:
        code = "bad_header" if row.dedupe_header is not None else "bad_field"
        raise Problem(code, str(error)) from None
    return None if id is None else f"in:{row.id}:{id}"
