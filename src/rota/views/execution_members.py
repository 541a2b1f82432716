"""The members of a shown execution that its row has under another name or in another form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rota.domain.blocker import Kind
from rota.domain.status import Status
from rota.domain.workflow import wait as waits
from rota.store.reader import ExecutionRow
from rota.views.shape import Shape
from rota.views.stored_json import decoded, error_text


def _attempts(row: ExecutionRow) -> int:
    """The row counts an attempt when it has ended."""
    return row.attempts + (row.status is Status.RUNNING)


DERIVED: dict[str, Callable[[ExecutionRow], Any]] = {
    "execution_id": lambda row: row.id,
    "version": lambda row: row.job_version,
    "reason": lambda row: None if row.reason in ("", Kind.RUN) else row.reason,
    "retry_count": lambda row: max(0, _attempts(row) - 1),
    "attempt_count": _attempts,
    "error_message": lambda row: error_text(decoded(row.error)),
    "worker_id": lambda row: None if row.worker_id is None else str(row.worker_id),
    "run_at": lambda row: row.run_at if row.due_at is None else row.due_at,
    "start_by": lambda row: None if waits.is_wait(row.job) else row.deadline,
    "completed_at": lambda row: row.finished_at,
    "cancel_requested_at": lambda row: row.cancel_at,
    "last_heartbeat": lambda row: row.heartbeat_at if row.status is Status.RUNNING else None,
    "tags": lambda row: decoded(row.tags),
    "actor": lambda row: row.actor or None,
    "parent_id": lambda row: row.parent,
    "run_id": lambda row: row.run,
    "index": lambda row: row.map_index,
    "catch_up": lambda row: bool(row.catch_up),
    "headers": lambda row: decoded(row.headers),
    "arguments": lambda row: decoded(row.arguments),
    "result": lambda row: decoded(row.result),
    "error": lambda row: decoded(row.error),
}


def members(kind: type[Shape], row: ExecutionRow) -> dict[str, Any]:
    """Those that the shape has."""
    return {name: DERIVED[name](row) for name in kind.__struct_fields__ if name in DERIVED}
