"""Dead letters: failed executions that were neither replayed nor discarded."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from rota.domain.errors import UsageError
from rota.store import reader
from rota.store.port import View
from rota.store.reader import Filter
from rota.views import lookup
from rota.views.shape import Page, Shape, page, shaped
from rota.views.stored_json import decoded, error_text

PAGE = 500


class DeadLetter(Shape, frozen=True):
    """A failed execution, with the error of its last attempt."""

    execution_id: str
    job: str
    app: str
    queue: str
    reason: str
    completed_at: datetime
    error_message: str | None
    error: Any


def dead_letters(view: View, namespace: str, wanted: Filter, reason: str | None) -> Page[DeadLetter]:
    """Newest first."""
    one_more = msgspec.structs.replace(lookup.chosen(view, namespace, wanted), limit=wanted.limit + 1)
    rows = reader.dead(view, namespace, one_more, reason)
    return page([_dead_letter(row) for row in rows], wanted.limit)


def every_id(view: View, namespace: str, wanted: Filter, reason: str | None) -> list[str]:
    """The ids of all that match, oldest first."""
    found: list[str] = []
    wanted = lookup.chosen(view, namespace, wanted)
    while True:
        before = found[-1] if found else wanted.before
        rows = reader.dead(view, namespace, msgspec.structs.replace(wanted, before=before, limit=PAGE), reason)
        found += [row.id for row in rows]
        if len(rows) < PAGE:
            return found[::-1]


def named(view: View, namespace: str, parts: tuple[str, ...]) -> list[str]:
    """The ids of the dead letters with these ids, or parts of ids."""
    found = lookup.execution_ids(view, namespace, parts)
    known = reader.are_dead(view, namespace, found)
    for id in found:
        if id not in known:
            raise UsageError(f"{id} is not a dead letter (any more); `rota dead` lists them")
    return found


def _dead_letter(row: reader.DeadRow) -> DeadLetter:
    error = decoded(row.error)
    return shaped(
        DeadLetter,
        row,
        execution_id=row.id,
        completed_at=row.failed_at,
        error_message=error_text(error),
        error=error,
    )
