"""An attempt of an execution, with the resources that its process used."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.domain import usage
from rota.store import reader
from rota.store.port import View
from rota.store.reader import AttemptRow
from rota.views.shape import Page, Shape, page, shaped
from rota.views.stored_json import decoded, error_text


class Usage(Shape, frozen=True):
    """The resources that an attempt in its own process used, with child processes. `signal` ended it, such as
    SIGKILL."""

    cpu: timedelta
    """Seconds of processor time."""
    peak_bytes: int
    """The most memory that it had, in bytes."""
    exit_code: int | None
    """The exit code of its process; null if a signal ended it."""
    signal: str | None
    """The signal that ended its process, such as `SIGKILL`; null if none did."""


class Attempt(Shape, frozen=True):
    """An attempt that has ended, with the numbers that its function saw as `ctx.attempt` and `ctx.fence`.

    `fence` counts all starts. `attempt` counts towards the retries: a start after one that was snoozed, given back or
    lost has the same number again. `error` has the keys type, message and traceback, and `source` with the lines around
    the frames of your own code, if there are some. An execution that ended without a start has one attempt whose
    `started_at` is None.
    """

    attempt: int
    """Its number among the attempts that count towards the retries, from 1."""
    fence: int
    """Its number among all starts of the execution, from 1."""
    status: str
    """The status that the attempt has led to."""
    reason: str
    is_final: bool
    """Whether the execution ended with it."""
    worker_id: str | None
    """The id of the worker that ran it; null without a start."""
    worker: str | None
    """The name of the worker that ran it; null without a start."""
    started_at: datetime | None
    """When it started; null if the execution ended without a start."""
    completed_at: datetime
    """When it ended."""
    result: Any
    error: Any
    usage: Usage | None
    """The processor time and memory that it took; null if they are not known."""

    @property
    def error_message(self) -> str | None:
        """Type and message of the error, such as "ValueError: no luck"."""
        return error_text(self.error)


def attempts(view: View, namespace: str, id: str, most: int | None = None) -> list[Attempt]:
    """In order; with `most` the last ones."""
    if most is None:
        return [_attempt(row) for row in reader.attempts(view, namespace, id)]
    return [_attempt(row) for row in reader.attempts(view, namespace, id, None, most, is_ascending=False)][::-1]


def attempts_page(
    view: View, namespace: str, id: str, after: int | None, limit: int, *, is_ascending: bool
) -> Page[Attempt]:
    """Attempts behind the one with this fence."""
    rows = reader.attempts(view, namespace, id, after, limit + 1, is_ascending=is_ascending)
    return page([_attempt(row) for row in rows], limit)


def _attempt(row: AttemptRow) -> Attempt:
    return shaped(
        Attempt,
        row,
        attempt=row.number,
        is_final=bool(row.final),
        worker_id=None if row.worker_id is None else str(row.worker_id),
        completed_at=row.finished_at,
        result=decoded(row.result),
        error=decoded(row.error),
        usage=None if row.usage is None else _usage(row.usage),
    )


def _usage(stored: str) -> Usage | None:
    try:
        found = usage.decode(stored)
    except msgspec.DecodeError:
        return None
    return shaped(Usage, found, cpu=found.cpu_s)
