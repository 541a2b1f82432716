"""An inbound webhook, as it is shown: without its secret, except in the answer that makes it."""

from __future__ import annotations

from datetime import datetime

from rota.domain.hook import Dedupe
from rota.store import hook_reader
from rota.store.hook_reader import HookRow
from rota.store.port import View
from rota.views.shape import Shape, shaped

PATH = "/api/v1/in/"


class Hook(Shape, frozen=True):
    """`path` is the address that the sender posts to. The secret before the last rotation is valid until
    `old_secret_until`, if that is to come."""

    hook_id: str
    """The id of the hook."""
    name: str
    event: str
    scheme: str
    dedupe: Dedupe | None
    signature_header: str | None
    timestamp_header: str | None
    description: str
    path: str
    """The path that requests are sent to."""
    old_secret_until: datetime | None
    created_at: datetime
    created_by: str
    updated_at: datetime


class NewHook(Hook, frozen=True):
    """A hook with its secret, which is shown only once; None if the request was answered before."""

    secret: str | None


def hooks(view: View, namespace: str) -> list[Hook]:
    return [hook(row, view.now) for row in hook_reader.hooks(view, namespace)]


def hook(row: HookRow, now: int) -> Hook:
    return shaped(Hook, row, **_members(row, now))


def new_hook(row: HookRow, now: int, secret: str) -> NewHook:
    return shaped(NewHook, row, **_members(row, now), secret=secret)


def _members(row: HookRow, now: int) -> dict[str, object]:
    return {
        "hook_id": row.id,
        "scheme": row.scheme.value,
        "dedupe": row.rules.dedupe,
        "path": PATH + row.key,
        "old_secret_until": row.old_until if row.old_until is not None and row.old_until > now else None,
    }
