"""An attempt of an execution, with the resources that its process used."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from rota.domain import usage
from rota.store.reader import AttemptRow
from rota.views.shape import Shape, shaped
from rota.views.stored_json import decoded


class Usage(Shape, frozen=True):
    """`cpu` in seconds, of the whole tree of processes; the signal that ended it, such as SIGKILL."""

    cpu: float
    peak_bytes: int
    exit_code: int | None
    signal: str | None


class Attempt(Shape, frozen=True):
    """Numbered from 1. An execution that ended without a start has one attempt without `startedAt`."""

    attempt: int
    status: str
    reason: str
    is_final: bool
    worker: str | None
    started_at: datetime | None
    completed_at: datetime
    result: Any
    error: Any
    usage: Usage | str | None


def attempt(row: AttemptRow, stored_usage: str | None) -> Attempt:
    return shaped(
        Attempt,
        row,
        attempt=row.fence,
        is_final=bool(row.final),
        completed_at=row.finished_at,
        result=decoded(row.result),
        error=decoded(row.error),
        usage=None if stored_usage is None else _usage(stored_usage),
    )


def _usage(stored: str) -> Usage | str:
    try:
        found = usage.decode(stored)
    except msgspec.DecodeError:
        return stored
    return shaped(Usage, found, cpu=found.cpu_s)
