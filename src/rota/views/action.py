"""An action on many things at once, and how far it is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rota.store.action_reader import ActionRow
from rota.views.shape import Shape, shaped
from rota.views.stored_json import decoded


class ActionError(Shape, frozen=True):
    """An item that could not be acted on."""

    id: str
    code: str
    detail: str


class Action(Shape, frozen=True):
    """`status` is collecting, running, done, cancelled, or refused because more matched than it may touch."""

    action_id: str
    status: str
    """`collecting`, `running`, `done`, `cancelled`, or `refused` if more matched than `atMost`."""
    action: str
    on: str
    """What is acted on: executions, runs, events, schedules or jobs."""
    done: int
    """How many items were acted on without an error."""
    failed: int
    """How many items could not be acted on."""
    total: int
    """How many items it acts on."""
    errors: list[ActionError]
    filter: Any
    options: Any
    note: str | None
    at_most: int
    as_of: datetime
    rate: float | None
    actor: str
    created_at: datetime
    started_at: datetime | None
    """When it began to act; null before that."""
    completed_at: datetime | None


def action(row: ActionRow) -> Action:
    return shaped(
        Action,
        row,
        action_id=row.id,
        status=row.status.value,
        action=row.verb,
        on=row.target,
        filter=decoded(row.filter),
        options=decoded(row.options),
        errors=[ActionError(**one) for one in decoded(row.errors)],
    )
