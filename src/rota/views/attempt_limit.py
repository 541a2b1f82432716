"""How many attempts an execution may have, for the executions of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.domain import overrides
from rota.domain.status import TERMINAL, Reason, Status
from rota.store.port import View
from rota.store.reader import ExecutionRow


class _Retry(msgspec.Struct, frozen=True):
    attempts: int | None = None


class _Definition(msgspec.Struct, frozen=True):
    """The part of a job's definition that is needed here."""

    retry: _Retry = _Retry()


_decode = msgspec.json.Decoder(_Definition).decode


def attempt_limits(view: View, rows: Sequence[ExecutionRow]) -> Mapping[str, int]:
    """The limits by id, without executions that no worker runs, such as an approval.

    An execution of code that has not ended follows the version in force. For an ended one, the limit is that of the
    version that it was accepted with, or the number of its attempts if it used them up.
    """
    live = [row.id for row in rows if row.status not in TERMINAL]
    ended = [row.id for row in rows if row.status in TERMINAL]
    found = _read(view, "rules_of", live) | _read(view, "rules_at_acceptance", ended)
    used_up = {row.id: row.attempts for row in rows if _is_used_up(row)}
    return found | used_up


def _read(view: View, statement: str, ids: list[str]) -> dict[str, int]:
    if not ids:
        return {}
    rows = view.rows(statement, ids=ids, lowest=min(ids), highest=max(ids))
    limits = {id: _limit(definition, stored) for id, definition, stored in rows}
    return {id: limit for id, limit in limits.items() if limit is not None}


def _limit(definition: str, stored: str | None) -> int | None:
    own = None if stored is None else overrides.decode(stored).retry
    return own["attempts"] if own else _decode(definition).retry.attempts


def _is_used_up(row: ExecutionRow) -> bool:
    return row.status is Status.FAILED and row.reason == Reason.RETRIES_EXHAUSTED
