"""Executions as the list of the API has them: the members that were asked for, and no others are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from rota.domain.instant import moment
from rota.domain.status import PENDING, Status
from rota.store import execution_reader, notes
from rota.store.port import View
from rota.store.reader import ExecutionRow
from rota.views.attempt_limit import attempt_limits
from rota.views.execution_members import DERIVED
from rota.views.progress import percent_of
from rota.views.shape import Shape
from rota.views.step import StepNames, step_names
from rota.views.why import first_codes

ScheduleIds = Mapping[tuple[str, str | None], str]


class ExecutionItem(Shape, frozen=True, kw_only=True):
    """An execution in a list. Without `fields` it has the members from `executionId` to `replayOf`.

    `why` is the code of the first check that holds it back.
    """

    execution_id: str | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    job_id: str | UnsetType | None = UNSET
    job: str | UnsetType = UNSET
    app: str | UnsetType = UNSET
    version: int | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    reason: str | UnsetType | None = UNSET
    retry_count: int | UnsetType = UNSET
    error_message: str | UnsetType | None = UNSET
    worker_id: str | UnsetType | None = UNSET
    created_at: datetime | UnsetType = UNSET
    run_at: datetime | UnsetType = UNSET
    started_at: datetime | UnsetType | None = UNSET
    """When its last attempt started; null before that."""
    completed_at: datetime | UnsetType | None = UNSET
    tags: list[str] | UnsetType | None = UNSET
    run_id: str | UnsetType | None = UNSET
    step: str | UnsetType | None = UNSET
    parent_id: str | UnsetType | None = UNSET
    replay_of: str | UnsetType | None = UNSET
    index: int | UnsetType | None = UNSET
    attempt_count: int | UnsetType = UNSET
    fence: int | UnsetType = UNSET
    crashes: int | UnsetType = UNSET
    worker: str | UnsetType | None = UNSET
    start_by: datetime | UnsetType | None = UNSET
    last_heartbeat: datetime | UnsetType | None = UNSET
    cancel_requested_at: datetime | UnsetType | None = UNSET
    schedule: str | UnsetType | None = UNSET
    """The name of the schedule that started it; null if none did."""
    schedule_id: str | UnsetType | None = UNSET
    tick: datetime | UnsetType | None = UNSET
    catch_up: bool | UnsetType = UNSET
    """Whether the tick was missed and caught up."""
    key: str | UnsetType | None = UNSET
    actor: str | UnsetType | None = UNSET
    headers: dict[str, str] | UnsetType | None = UNSET
    arguments: Any | UnsetType = UNSET
    result: Any | UnsetType = UNSET
    error: Any | UnsetType = UNSET
    max_attempts: int | UnsetType | None = UNSET
    """How many attempts its policy of retries allows; null if it has none."""
    progress: int | UnsetType | None = UNSET
    """Percent, as far as the job has reported; null if it has not."""
    why: str | UnsetType | None = UNSET
    """The code of the first check that holds it back; null if none does."""


class _Looked(msgspec.Struct, frozen=True):
    """A row, and the other data that was read for it."""

    row: ExecutionRow
    names: StepNames
    schedules: ScheduleIds
    codes: Mapping[str, str]
    limits: Mapping[str, int]
    told: Mapping[str, tuple[float | None, float]]


SUMMARY = ExecutionItem.__struct_fields__[: ExecutionItem.__struct_fields__.index("replay_of") + 1]
ENCODED = dict(zip(ExecutionItem.__struct_encode_fields__, ExecutionItem.__struct_fields__, strict=True))
"""Every member that `fields` may name."""
LARGE = {"arguments", "result", "error"}
"""Members that may be megabytes each."""
FIRST_PIECE = 4
"""How many executions with such members are read first; how many come next follows from their size."""


def items_within(
    view: View, namespace: str, ids: Sequence[str], members: Sequence[str], most_bytes: int
) -> tuple[list[ExecutionItem], int]:
    """`items` of as many ids as have so many bytes of arguments, results and errors, and how many ids that are."""
    if not LARGE & set(members):
        return items(view, namespace, ids, members), len(ids)
    found: list[ExecutionItem] = []
    done, size, piece = 0, 0, FIRST_PIECE
    while done < len(ids) and size < most_bytes:
        rows = _rows(view, namespace, ids[done : done + piece], set(members))
        found += _shown(view, namespace, rows, members)
        done = min(len(ids), done + piece)
        size += sum(len(row.arguments or "") + len(row.result or "") + len(row.error or "") for row in rows)
        piece = max(1, min(2 * piece, (most_bytes - size) * done // max(1, size)))
    return found, done


def items(view: View, namespace: str, ids: Sequence[str], members: Sequence[str] = SUMMARY) -> list[ExecutionItem]:
    """The executions with these members, in the order of `ids`."""
    wanted = set(members)
    if wanted <= {"execution_id"}:
        return [ExecutionItem(execution_id=id) for id in ids]
    return _shown(view, namespace, _rows(view, namespace, ids, wanted), members)


def _rows(view: View, namespace: str, ids: Sequence[str], wanted: Set[str]) -> list[ExecutionRow]:
    return execution_reader.rows(
        view,
        namespace,
        ids,
        arguments="arguments" in wanted,
        error=bool(wanted & {"error", "error_message"}),
        headers="headers" in wanted,
        result="result" in wanted,
    )


def _shown(view: View, namespace: str, rows: Sequence[ExecutionRow], members: Sequence[str]) -> list[ExecutionItem]:
    wanted = set(members)
    names = step_names(view, namespace, rows) if "step" in wanted else {}
    schedules = schedule_ids(view, namespace, rows) if "schedule_id" in wanted else {}
    pending = [row.id for row in rows if row.status in PENDING] if "why" in wanted else []
    codes = first_codes(view, namespace, pending)
    limits = attempt_limits(view, rows) if "max_attempts" in wanted else {}
    told = notes.progress_told(view, [row.id for row in rows]) if "progress" in wanted else {}
    return [item(_Looked(row, names, schedules, codes, limits, told), members) for row in rows]


def item(looked: _Looked, members: Sequence[str]) -> ExecutionItem:
    return ExecutionItem(**{name: _member(name, looked) for name in members})


def schedule_ids(view: View, namespace: str, rows: Sequence[ExecutionRow]) -> ScheduleIds:
    """The ids of their schedules, by app and name; removed ones are not found."""
    names = sorted({row.schedule for row in rows if row.schedule is not None})
    found = view.rows("ids_of_schedules", namespace=namespace, names=names) if names else []
    return {(app, name): str(id) for app, name, id in found}


def _member(name: str, looked: _Looked) -> Any:
    if name in _LOOKED:
        return _LOOKED[name](looked)
    value = DERIVED[name](looked.row) if name in DERIVED else getattr(looked.row, name)
    return moment(value) if name in _TIMES and value is not None else value


_TIMES = {
    *("created_at", "run_at", "started_at", "completed_at", "start_by", "tick", "cancel_requested_at"),
    "last_heartbeat",
}
_LOOKED: dict[str, Callable[[_Looked], Any]] = {
    "step": lambda one: one.names.get((one.row.run, one.row.step)),
    "schedule_id": lambda one: one.schedules.get((one.row.app, one.row.schedule)),
    "max_attempts": lambda one: one.limits.get(one.row.id),
    "progress": lambda one: percent_of(*_told(one), one.row.status),
    "why": lambda one: one.codes.get(one.row.id),
}
"""The members that need other data than the row."""


def _told(one: _Looked) -> tuple[float | None, float | None]:
    return one.told.get(one.row.id, (None, None))
