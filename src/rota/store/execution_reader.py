"""Lists executions: chooses the index ranges that a list with these filters is merged from, and filters the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from rota.domain.instant import MICROSECONDS
from rota.domain.status import TERMINAL, Status
from rota.ids import FIRST_ID, LAST_ID, first_at, is_id
from rota.store.port import View
from rota.store.reader import ExecutionRow, executions_of
from rota.store.scan import UNBOUNDED, Budget, Found, Head, scan

MOST_JOBS = 200
"""A namespace with more jobs is not merged from them, but read in the order of all ids."""
FEW = 2_000
CLOCKS_DIFFER = 600 * MICROSECONDS
"""An id has the time of the client's clock, `created_at` that of the database: a range of times is read with this much
on each side."""
MOST_WORKERS = 1_000
IDEMPOTENCY = "idempotency"
_LIVE = {
    Status.QUEUED: ("heads_of_ready",),
    Status.RUNNING: ("heads_of_running", "heads_of_open_runs"),
    Status.SCHEDULED: ("heads_of_scheduled",),
    Status.RETRYING: ("heads_of_scheduled",),
    Status.WAITING: ("heads_of_waiting",),
}
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
RankKey = tuple[int, str]


_CHANGING: dict[str, Any] = {
    "status": (),
    "reason": (),
    "error_type": (),
    "error": None,
    "worker": (),
    "fingerprint": (),
    "dead": None,
}
"""The filters that need more than the fixed columns of an execution, with their values if they are not given."""


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """Which executions to list. All filters must match: with one of their values, but with all `tags`.

    A job or a schedule is a name, an id, or `app/name`; a worker is an id or a name. `error` is a part of the
    text of the last error.
    """

    status: tuple[Status, ...] = ()
    job: tuple[str, ...] = ()
    app: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    error_type: tuple[str, ...] = ()
    error: str | None = None
    created_from: int | None = None
    created_to: int | None = None
    worker: tuple[str, ...] = ()
    schedule: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    parent: tuple[str, ...] = ()
    replay_of: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    actor: tuple[str, ...] = ()
    dead: bool | None = None
    id: tuple[str, ...] = ()
    fingerprint: tuple[str, ...] = ()

    @property
    def is_of_state(self) -> bool:
        """Whether a filter needs more than the fixed columns of an execution."""
        return not self.is_of_state_only(())

    def is_of_state_only(self, names: Sequence[str]) -> bool:
        """Whether these are the only filters that need more than the fixed columns."""
        return all(getattr(self, name) == none for name, none in _CHANGING.items() if name not in names)


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """A position in a list: behind this id, in this direction. None is the start."""

    after: str | None = None
    is_ascending: bool = False


def page(
    view: View, namespace: str, wanted: Criteria, where: Where, most: int, budget: Budget = UNBOUNDED
) -> Found[str]:
    """The ids of a page."""
    if not _can_match(wanted):
        return Found([], has_more=False)
    reading = _Reading(view, namespace, wanted, where)
    return scan(reading.heads(), reading.keep, most, budget, is_ascending=where.is_ascending)


def page_by_rank(
    view: View,
    namespace: str,
    queue: str,
    wanted: Criteria,
    after: RankKey | None,
    most: int,
    budget: Budget,
    *,
    back: bool,
) -> Found[RankKey]:
    """Queued executions of one queue in the order in which they would start; their positions are ranks and ids."""
    lanes = [str(row[0]) for row in view.rows("lanes_in_queue", namespace=namespace, queue=queue)]
    first = after or ((2**63 - 1, LAST_ID) if back else (-(2**63), FIRST_ID))
    statement = "heads_of_lanes" + ("" if back else "_asc")

    def more(heads: list[tuple[str, RankKey]], most: int) -> list[tuple[str, RankKey]]:
        rows = view.rows(statement, heads=[(int(lane), rank, id) for lane, (rank, id) in heads], most=most)
        return [(str(lane), _rank_key(value)) for lane, value in rows]

    reading = _Reading(view, namespace, wanted, Where())

    def keep(keys: list[RankKey]) -> list[RankKey]:
        kept = set(reading.keep([id for _, id in keys]))
        return [key for key in keys if key[1] in kept]

    return scan([Head(more, lane, first) for lane in lanes], keep, most, budget, is_ascending=not back)


def rows(
    view: View, namespace: str, ids: Sequence[str], *, arguments: bool, error: bool, headers: bool, result: bool
) -> list[ExecutionRow]:
    """The rows of a page, in the order of `ids`."""
    large = {"arguments": arguments, "error": error, "headers": headers, "result": result}
    by_id = {row.id: row for row in executions_of(view, namespace, ids, **large)}
    return [by_id[id] for id in ids if id in by_id]


def jobs_of(view: View, namespace: str) -> list[str]:
    """The jobs that may have executions; one more than `MOST_JOBS` if there are more."""
    return [row[0] for row in view.rows("jobs_with_lanes", namespace=namespace, most=MOST_JOBS + 1)]


def _can_match(wanted: Criteria) -> bool:
    """A filter on ids in which no value is an id matches nothing."""
    given = (wanted.id, wanted.run, wanted.parent, wanted.replay_of)
    return all(not values or any(map(is_id, values)) for values in given)


def _rank_key(text: str) -> RankKey:
    rank, _, id = text.partition(" ")
    return int(rank), id


class _Reading:
    """One page: where it begins, and the filters as parameters."""

    def __init__(self, view: View, namespace: str, wanted: Criteria, where: Where) -> None:
        self._view, self._namespace, self._wanted = view, namespace, wanted
        self._is_ascending = where.is_ascending
        self._after = where.after or (FIRST_ID if where.is_ascending else LAST_ID)
        low, high = wanted.created_from, wanted.created_to
        self._bounds = {
            "lowest": FIRST_ID if low is None else first_at(low - CLOCKS_DIFFER),
            "highest": LAST_ID if high is None else first_at(high + CLOCKS_DIFFER),
        }
        self._jobs = _named(view, namespace, wanted.job, "jobs_with_ids", is_id)
        self._schedules = _named(view, namespace, wanted.schedule, "schedules_with_ids", _is_number)
        self._workers = _workers(view, namespace, wanted.worker)
        self._fixed = self._fixed_filters()
        self._changing = self._changing_filters()
        self._proves_namespace = self._proves_job = self._proves_state = False
        """Facts about every id that the heads give, so that `keep` need not read them."""

    # --- Where the ids come from -----------------------------------------------------------------

    def heads(self) -> list[Head[str]]:
        """The narrowest index ranges that have all matching executions."""
        wanted = self._wanted
        if wanted.id:
            return [self._of_ids(wanted.id)]
        if wanted.key:
            rows = self._view.rows(
                "holders_of_keys", namespace=self._namespace, kind=IDEMPOTENCY, keys=list(wanted.key)
            )
            return [self._of_ids([row[0] for row in rows])]
        if wanted.tag:
            return self._own("heads_of_tags", wanted.tag[:1])
        for statement, ids in (
            ("heads_of_runs", wanted.run),
            ("heads_of_parents", wanted.parent),
            ("heads_of_replays", wanted.replay_of),
        ):
            if ids:
                return self._of(statement, [id for id in ids if is_id(id)])
        if wanted.fingerprint:
            self._proves_state = wanted.is_of_state_only(("fingerprint", "dead")) and wanted.dead is not False
            return self._own("heads_of_fingerprints", wanted.fingerprint)
        if wanted.dead:
            self._proves_state = wanted.is_of_state_only(("dead",))
            names = self._job_names()
            return (
                self._of_names("heads_of_dead_jobs", names) if names else self._own("heads_of_dead", [self._namespace])
            )
        return self._of_statuses() or self._of_jobs()

    def _job_names(self) -> list[str]:
        return sorted({job.rpartition("/")[2] for job in self._jobs})

    def _of_jobs(self) -> list[Head[str]]:
        if self._wanted.job:
            return self._of_names("heads_of_jobs", self._job_names())
        names = jobs_of(self._view, self._namespace)
        return self._of_names("heads_of_jobs", names) if len(names) <= MOST_JOBS else self._of("heads_of_all", [""])

    def _of_names(self, statement: str, names: Sequence[str]) -> list[Head[str]]:
        """Of jobs with these names, whatever their apps."""
        self._proves_job = not any("/" in job for job in self._jobs)
        return self._own(statement, names)

    def _own(self, statement: str, names: Sequence[str]) -> list[Head[str]]:
        """With a statement that reads only this namespace."""
        self._proves_namespace = True
        return self._of(statement, names)

    def _of_statuses(self) -> list[Head[str]]:
        """Empty if it is cheaper to read by job: for successes, which are most executions, and for a small tenant."""
        wanted = self._wanted
        statuses = set(wanted.status or (set(Status) if wanted.error or wanted.error_type else ()))
        if wanted.error or wanted.error_type:
            statuses.discard(Status.SUCCESS)  # The last attempt of a success has no error.
        if not statuses or Status.SUCCESS in statuses or self._has_few_left():
            return []
        # The other tables are no proof: the execution of an open run is in `waiting`, and its state is running.
        self._proves_state = wanted.is_of_state_only(("status",)) and statuses <= TERMINAL | {Status.QUEUED}
        heads = self._of("heads_of_statuses", sorted(statuses & TERMINAL))
        live = {statement for status in statuses - TERMINAL for statement in _LIVE[status]}
        for statement in sorted(live):
            few = self._few(statement)
            heads += self._of(statement, [""]) if few is None else [self._of_ids(few)]
        return heads

    def _has_few_left(self) -> bool:
        names = self._job_names() if self._wanted.job else jobs_of(self._view, self._namespace)
        if len(names) > MOST_JOBS:
            return False
        statement = self._directed("few_left")
        positions = [(name, self._after) for name in names]
        found = self._view.rows(statement, namespace=self._namespace, heads=positions, most=FEW + 1, **self._bounds)
        return int(found[0][0]) <= FEW

    def _few(self, statement: str) -> list[str] | None:
        """All ids of this namespace in a table that is indexed by lanes, if they are few."""
        name = {"heads_of_ready": "few_ready", "heads_of_waiting": "few_waiting"}.get(statement)
        if name is None:
            return None
        rows = self._view.rows(name, namespace=self._namespace, most=FEW + 1)
        return None if len(rows) > FEW else [row[0] for row in rows]

    def _of(self, statement: str, names: Sequence[str]) -> list[Head[str]]:
        directed, view, namespace, bounds = self._directed(statement), self._view, self._namespace, self._bounds

        def more(heads: list[tuple[str, str]], most: int) -> list[tuple[str, str]]:
            return view.rows(directed, namespace=namespace, heads=heads, most=most, **bounds)

        return [Head(more, name, self._after) for name in dict.fromkeys(names)]

    def _of_ids(self, ids: Sequence[str]) -> Head[str]:
        known = sorted({id for id in ids if is_id(id)}, reverse=not self._is_ascending)

        def more(heads: list[tuple[str, str]], most: int) -> list[tuple[str, str]]:
            ((name, after),) = heads
            behind = [id for id in known if (id > after if self._is_ascending else id < after)]
            return [(name, id) for id in behind[:most]]

        return Head(more, "", self._after)

    def _directed(self, statement: str) -> str:
        return statement + ("_asc" if self._is_ascending else "")

    # --- Which of them match ---------------------------------------------------------------------

    def keep(self, ids: list[str]) -> list[str]:
        """Those that match, in the same order."""
        unsure = [id for id in ids if not self._is_sure(id)]
        if unsure:
            kept = self._matching("matching", self._fixed, unsure).union(set(ids).difference(unsure))
            ids = [id for id in ids if id in kept]
        if ids and self._wanted.is_of_state and not self._proves_state:
            kept = self._in_state(ids)
            ids = [id for id in ids if id in kept]
        return ids

    @cached_property
    def _is_sure(self) -> Callable[[str], bool]:
        """Whether the columns of an execution that never change are known to match."""
        wanted = self._wanted
        given = msgspec.structs.replace(wanted, **_CHANGING, created_from=None, created_to=None)
        given = msgspec.structs.replace(given, job=()) if self._proves_job else given
        if given != Criteria() or not (self._proves_namespace or self._is_only_namespace()):
            return lambda id: False
        low, high = wanted.created_from, wanted.created_to
        lowest = FIRST_ID if low is None else first_at(low + CLOCKS_DIFFER)
        highest = LAST_ID if high is None else first_at(high - CLOCKS_DIFFER)
        return lambda id: lowest <= id < highest

    def _is_only_namespace(self) -> bool:
        return not self._view.rows("other_namespaces", namespace=self._namespace)

    def _in_state(self, ids: list[str]) -> set[str]:
        wanted = self._wanted
        if wanted.is_of_state_only(("status",)) and TERMINAL.issuperset(wanted.status):
            return self._matching("matching_end", {"statuses": self._changing["statuses"]}, ids)
        return self._matching("matching_state", self._changing, ids)

    def _matching(self, statement: str, filters: dict[str, Any], ids: list[str]) -> set[str]:
        bounds = {"lowest": min(ids), "highest": max(ids)}
        return {
            row[0] for row in self._view.rows(statement, namespace=self._namespace, ids=list(ids), **bounds, **filters)
        }

    def _fixed_filters(self) -> dict[str, Any]:
        wanted = self._wanted
        return {
            **_any("job", "jobs", self._jobs, is_given=bool(wanted.job)),
            **_any("app", "apps", wanted.app),
            **_any("queue", "queues", wanted.queue),
            **_any("actor", "actors", wanted.actor),
            **_any("key", "keys", wanted.key),
            **_any("schedule", "schedules", self._schedules, is_given=bool(wanted.schedule)),
            **_any("run", "runs", [id for id in wanted.run if is_id(id)]),
            **_any("parent", "parents", [id for id in wanted.parent if is_id(id)]),
            **_any("replay", "replays", [id for id in wanted.replay_of if is_id(id)]),
            "any_tag": not wanted.tag,
            "tags": [(tag,) for tag in wanted.tag],
            "created_from": wanted.created_from,
            "created_to": wanted.created_to,
        }

    def _changing_filters(self) -> dict[str, Any]:
        wanted = self._wanted
        starts = [(f'{{"type":{msgspec.json.encode(name).decode()},',) for name in wanted.error_type]
        return {
            **_any("status", "statuses", [status.value for status in wanted.status]),
            **_any("reason", "reasons", wanted.reason),
            **_any("worker", "workers", self._workers, is_given=bool(wanted.worker)),
            **_any("fingerprint", "fingerprints", wanted.fingerprint),
            "any_dead": wanted.dead is None,
            "is_dead": bool(wanted.dead),
            "error": None if not wanted.error else msgspec.json.encode(wanted.error).decode()[1:-1],
            "any_error_type": not starts,
            "error_types": starts,
        }


def _any(name: str, plural: str, values: Sequence[Any], *, is_given: bool | None = None) -> dict[str, Any]:
    """A filter as parameters. One that is given and has no value, such as an unknown job, matches nothing."""
    return {f"any_{name}": not (bool(values) if is_given is None else is_given), plural: list(values)}


def _named(
    view: View, namespace: str, given: Sequence[str], statement: str, is_number: Callable[[str], bool]
) -> list[str]:
    """Names as they are, and ids as `app/name`."""
    numbers = [one for one in given if is_number(one)]
    found = view.rows(statement, namespace=namespace, ids=numbers) if numbers else []
    return [*(one for one in given if not is_number(one)), *(f"{app}/{name}" for app, name in found)]


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _workers(view: View, namespace: str, given: Sequence[str]) -> list[int]:
    names = [one for one in given if not _is_number(one)]
    rows = view.rows("workers_named", namespace=namespace, names=names, most=MOST_WORKERS) if names else []
    return [*(int(one) for one in given if _is_number(one)), *(row[0] for row in rows)]
