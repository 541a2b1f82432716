"""Reads actions on many things, and collects the ids that they act on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.action import State
from rota.ids import FIRST_ID, LAST_ID, is_id
from rota.store.port import View


class ActionRow(msgspec.Struct, frozen=True, array_like=True):
    """An action; `filter` and `options` are JSON objects, `errors` is a JSON list."""

    id: str
    namespace: str
    actor: str
    verb: str
    target: str
    filter: str
    options: str
    note: str | None
    at_most: int
    as_of: int
    rate: float | None
    status: State
    total: int
    done: int
    failed: int
    mark: str | None
    errors: str
    created_at: int
    started_at: int | None
    completed_at: int | None
    cancel_at: int | None


def action(view: View, namespace: str, id: str) -> ActionRow | None:
    found = view.records("action", ActionRow, namespace=namespace, id=id) if is_id(id) else []
    return found[0] if found else None


def actions(view: View, namespace: str, after: str | None, most: int, *, is_ascending: bool) -> list[ActionRow]:
    position = after or (FIRST_ID if is_ascending else LAST_ID)
    statement = "actions_listed_asc" if is_ascending else "actions_listed"
    return view.records(statement, ActionRow, namespace=namespace, position=position, most=most)


def dead_before(view: View, namespace: str, ids: Sequence[str], as_of: int) -> set[str]:
    """Those that were dead letters at this time."""
    return {row[0] for row in view.rows("dead_before", namespace=namespace, ids=list(ids), as_of=as_of)}
