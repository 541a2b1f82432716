"""Changes: what was changed in a range of time, merged from versions, workers and the audit trail."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from rota.api import cursor, listing
from rota.api.answer import Answer
from rota.api.call import Call
from rota.api.query import Page
from rota.api.route import route
from rota.domain.access import Scope
from rota.domain.change import Kind
from rota.domain.instant import MICROSECONDS, instant
from rota.store.port import View
from rota.views import change as views
from rota.views.change import Change

USUAL = 3600 * MICROSECONDS

DIGITS = 20


class ChangesQuery(Page, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`from` and `to` are half-open; they also take a duration, such as `24h` for a day ago. Default: the last hour."""

    from_: datetime | None = None
    to: datetime | None = None
    kind: Annotated[tuple[Kind, ...], msgspec.Meta(description="Repeated: any of these.")] = ()


@route(
    "GET /changes",
    Scope.READ,
    answer=listing.of(Change),
    answer_example={
        "items": [
            {
                "changeId": "a17",
                "at": "2026-01-31T08:00:00Z",
                "kind": "pause",
                "action": "queue.pause",
                "subject": {"kind": "queue", "id": "mail", "name": "mail", "app": None},
                "text": "queue mail paused",
                "actor": "oncall",
                "note": "the provider is down",
            }
        ],
        "nextCursor": None,
        "previousCursor": None,
    },
)
async def list_changes(call: Call, query: ChangesQuery) -> Answer:
    """What was changed, newest first: versions, pauses, drains, workers that came and went, settings."""
    at = listing.position(call, query, _is_key)

    def read(view: View) -> list[Change]:
        high = view.now + 1 if query.to is None else instant(query.to)
        low = high - USUAL if query.from_ is None else instant(query.from_)
        if at.key is not None and query.order == "desc" and not at.is_back:
            high = min(high, int(at.key[0]) + 1)
        return views.changes(view, call.namespace, low, high)

    found = [one for one in await call.read(read) if not query.kind or one.kind in query.kind]
    return listing.of_all(call, query, Change, found, _key)


def _key(one: Change) -> list[str]:
    return [str(instant(one.at)).zfill(DIGITS), one.change_id]


def _is_key(key: list[str]) -> bool:
    if len(key) != 2 or len(key[0]) != DIGITS or not key[0].isdecimal():
        raise cursor.refused()
    return True
