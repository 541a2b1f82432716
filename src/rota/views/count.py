"""How many executions, runs or events there are, counted up to a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

import msgspec

from rota.clock import MACHINE
from rota.domain.instant import moment
from rota.domain.status import Status
from rota.store import execution_reader, workflow_reader
from rota.store.execution_reader import Criteria, Where
from rota.store.port import View
from rota.store.scan import LARGEST_PIECE, MOST_ROWS, MOST_S, Budget
from rota.views.shape import Shape
from rota.views.stored_json import decoded, error_text

MOST = 10_000
"""Nothing is counted further."""
MOST_GROUPS = 1_000
MOST_FILTERED = 5_000
"""How many executions are read for one of several groups, if a filter needs more than an index."""
JOBS_AT_ONCE = 20


class Counted(StrEnum):
    """The things that can be counted."""

    EXECUTIONS = "executions"
    RUNS = "runs"
    EVENTS = "events"


class By(StrEnum):
    """Which executions are counted together."""

    STATUS = "status"
    JOB = "job"
    QUEUE = "queue"
    REASON = "reason"
    ERROR_TYPE = "errorType"
    DAY = "day"
    FINGERPRINT = "fingerprint"


class Group(Shape, frozen=True):
    """`is_capped` says that there may be more. `sample_id` is one of them, the newest if they were all counted."""

    value: str | None
    """The value that they have in common."""
    count: int
    is_capped: bool
    sample_id: str | None
    """The id of one of them."""
    error_message: str | None = None


class Counts(Shape, frozen=True):
    """`count` is the number of all of them. `groups` are the largest first."""

    of: Counted
    by: By | None
    """What the groups have in common; null without groups."""
    count: int
    """The number of all of them."""
    is_capped: bool
    groups: list[Group]
    """The largest first."""


class _Value(msgspec.Struct, frozen=True, array_like=True):
    id: str
    queue: str
    reason: str
    created_at: int
    job: str
    status: Status
    fingerprint: str | None
    error: str | None


def executions(view: View, namespace: str, wanted: Criteria, by: By | None) -> Counts:
    return _counts(view, namespace, wanted, by, Counted.EXECUTIONS)


def runs(view: View, namespace: str, wanted: Criteria, by: By | None) -> Counts:
    """Runs are the executions of workflows."""
    known = [f"{row.app}/{row.name}" for row in workflow_reader.workflows(view, namespace)]
    if wanted.job:
        given = set(wanted.job)
        known = [name for name in known if name in given or name.partition("/")[2] in given]
    if not known:
        return Counts(Counted.RUNS, by, 0, False, [])
    return _counts(view, namespace, msgspec.structs.replace(wanted, job=tuple(known)), by, Counted.RUNS)


def events(
    view: View, namespace: str, name: str | None, subject: str | None, low: int, high: int, by: By | None
) -> Counts:
    """All events of a namespace, or those with a name."""
    about = {"namespace": namespace, "subject": subject, "low": low, "high": high}
    if name is None:
        rows = view.rows("newest_events_to_count", **about, most=MOST_ROWS)
        times, is_capped = [at for at, matches in rows if matches], len(rows) >= MOST_ROWS
    else:
        times = [row[0] for row in view.rows("events_to_count", **about, name=name, most=MOST + 1)]
        is_capped = False
    is_capped = is_capped or len(times) > MOST
    groups = _grouped(((_day(at), None) for at in times[:MOST]), is_capped=is_capped) if by is By.DAY else []
    return Counts(Counted.EVENTS, by, min(len(times), MOST), is_capped, groups)


def _counts(view: View, namespace: str, wanted: Criteria, by: By | None, of: Counted) -> Counts:
    by = by or (By.FINGERPRINT if wanted.dead else None)
    left = _TimeLeft()
    if by is By.STATUS:
        groups = [_count_one(view, namespace, wanted, left, status=status) for status in wanted.status or tuple(Status)]
        return _summed(of, by, groups)
    if by is By.JOB:
        return _summed(of, by, _by_job(view, namespace, wanted, left))
    found = execution_reader.page(view, namespace, wanted, Where(), MOST, left.budget())
    groups = []
    if by is not None:
        statement = "letters_to_count" if wanted.dead and by in _OF_LETTERS else "values_to_count"
        values = _values(view, namespace, found.keys, statement, with_error=by is By.ERROR_TYPE)
        groups = _grouped(((_VALUES[by](value), value.id) for value in values), is_capped=found.has_more)
    if by is By.FINGERPRINT:
        groups = _with_messages(view, namespace, groups)
    return Counts(of, by, len(found.keys), found.has_more, groups)


class _TimeLeft:
    """One budget for all groups."""

    def __init__(self) -> None:
        self._until = MACHINE.monotonic() + MOST_S

    @property
    def seconds(self) -> float:
        return max(0.0, self._until - MACHINE.monotonic())

    def budget(self) -> Budget:
        return Budget(MOST_ROWS, self.seconds)


def _by_job(view: View, namespace: str, wanted: Criteria, left: _TimeLeft) -> list[Group]:
    """Without other filters, one index has the answer."""
    names = list(wanted.job) or execution_reader.jobs_of(view, namespace)
    is_plain = msgspec.structs.replace(wanted, job=()) == Criteria() and not any("/" in name for name in names)
    if not is_plain or any(map(_is_id, names)):
        found = [_count_one(view, namespace, wanted, left, job=name) for name in names]
        return [msgspec.structs.replace(one, value=(one.value or "").rpartition("/")[2]) for one in found]
    groups: list[Group] = []
    for start in range(0, len(names), JOBS_AT_ONCE):
        some = names[start : start + JOBS_AT_ONCE]
        if not left.seconds:
            groups += [Group(name, 0, True, None) for name in some]
            continue
        rows = view.rows("counted_of_jobs", namespace=namespace, heads=[(name,) for name in some], most=MOST + 1)
        groups += [Group(name, min(count, MOST), count > MOST, newest) for name, count, newest in rows]
    return groups


def _is_id(name: str) -> bool:
    return name[:1].isdigit()


def _count_one(
    view: View,
    namespace: str,
    wanted: Criteria,
    left: _TimeLeft,
    *,
    status: Status | None = None,
    job: str | None = None,
) -> Group:
    changes: dict[str, tuple[str, ...]] = {"status": (status,)} if status else {"job": (job or "",)}
    value = status.value if status else job
    if not left.seconds:
        return Group(value, 0, True, None)
    one = msgspec.structs.replace(wanted, **changes)
    most = MOST_ROWS if _is_plain(wanted) else MOST_FILTERED
    found = execution_reader.page(view, namespace, one, Where(), MOST, Budget(most, left.seconds))
    return Group(value, len(found.keys), found.has_more, found.keys[0] if found.keys else None)


def _is_plain(wanted: Criteria) -> bool:
    """Whether indexes have the answer, so that few executions are read one by one."""
    read = {"status": (), "dead": None, "created_from": None, "created_to": None}
    return msgspec.structs.replace(wanted, **read) == Criteria()


def _summed(of: Counted, by: By, groups: Sequence[Group]) -> Counts:
    kept = sorted((one for one in groups if one.count or one.is_capped), key=lambda one: (-one.count, one.value or ""))
    total = sum(one.count for one in kept)
    is_capped = any(one.is_capped for one in kept) or total > MOST or len(kept) > MOST_GROUPS
    return Counts(of, by, min(total, MOST), is_capped, kept[:MOST_GROUPS])


def _values(
    view: View, namespace: str, ids: Sequence[str], statement: str = "values_to_count", *, with_error: bool
) -> Iterable[_Value]:
    for start in range(0, len(ids), LARGEST_PIECE):
        some = list(ids[start : start + LARGEST_PIECE])
        about = {"ids": some, "lowest": min(some), "highest": max(some), "with_error": with_error}
        yield from view.records(statement, _Value, namespace=namespace, **about)


def _grouped(values: Iterable[tuple[str | None, str | None]], *, is_capped: bool) -> list[Group]:
    counts: dict[str | None, int] = {}
    samples: dict[str | None, str | None] = {}
    for value, id in values:
        counts[value] = counts.get(value, 0) + 1
        samples[value] = max(samples.get(value) or "", id or "") or None
    groups = [Group(value, count, is_capped, samples[value]) for value, count in counts.items()]
    return sorted(groups, key=lambda one: (-one.count, one.value or ""))[:MOST_GROUPS]


def _with_messages(view: View, namespace: str, groups: Sequence[Group]) -> list[Group]:
    samples = [one.sample_id for one in groups if one.sample_id]
    values = _values(view, namespace, samples, with_error=True)
    messages = {value.id: error_text(decoded(value.error)) for value in values}
    return [msgspec.structs.replace(one, error_message=messages.get(one.sample_id or "")) for one in groups]


def _error_type(stored: str | None) -> str | None:
    error = decoded(stored)
    return str(error["type"]) if isinstance(error, dict) and "type" in error else None


def _day(instant: int) -> str:
    return moment(instant).date().isoformat()


_OF_LETTERS = (By.QUEUE, By.REASON, By.FINGERPRINT)
"""What the row of a dead letter has."""
_VALUES: dict[By, Callable[[_Value], str | None]] = {
    By.QUEUE: lambda value: value.queue,
    By.REASON: lambda value: value.reason or None,
    By.ERROR_TYPE: lambda value: _error_type(value.error),
    By.DAY: lambda value: _day(value.created_at),
    By.FINGERPRINT: lambda value: value.fingerprint,
}
