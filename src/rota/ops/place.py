"""`place` writes all new executions, each with the row of its state.

Enqueues (also by jobs), replays, ticks and backfills decide what to run and call `place`. It decides between ready,
scheduled and waiting, computes the rank, and writes. `PLACED` in `store/statements.py` lists the columns of `execution`
that it fills; a column that may differ between the batches of one call is also in the statement `place` and in
`_ROUTE` or `_BATCH` here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import msgspec

from rota.domain.blocker import Kind
from rota.domain.rank import Policy, rank
from rota.domain.workflow.wait import is_wait
from rota.ids import made_at
from rota.ops.statistics import count_created
from rota.store.hints import Due, Ready
from rota.store.port import Tx

Blocker = tuple[Kind, str]
"""What an execution waits for: the kind, and the key within it."""


class Route(msgspec.Struct, frozen=True):
    """The columns of an execution that its job and its queue decide, and how the queue orders and limits them."""

    namespace: str
    app: str
    job: str
    queue: str
    job_version: int = 0
    lane: int = 0
    policy: Policy = Policy.PRIORITY
    max_depth: int | None = None
    depends: bool = False
    """Whether the job depends on others."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of an execution that come from its caller as they are."""

    actor: str = ""
    key: str | None = None
    parent: str | None = None
    replay_of: str | None = None
    tags: str | None = None
    trace: str | None = None
    headers: str | None = None
    overrides: str | None = None
    upstream: str | None = None
    """The executions that it is started after, by job, as JSON."""
    callback: str | None = None
    """The URL that is called at its end, as `domain/callback.py` reads it."""


class StepOf(msgspec.Struct, frozen=True):
    """The columns of an execution that is a step of a run."""

    run: str
    number: int | None
    """The number of the step in the graph; None if the execution is the undo of the run."""
    inputs: str | None = None
    first_item: int | None = None
    """For items of a map: the number of the first one. The others follow it in order."""

    def columns(self, position: int) -> tuple[str, int | None, int | None, str | None]:
        return self.run, self.number, None if self.first_item is None else self.first_item + position, self.inputs


ROUTE_AGE_S = 1.0
"""How long a route is cached. The statement `arrive` compares it with the tables, so a stale one is never used: until
it is read again, enqueues are placed directly."""
_NO_STEP = (None, None, None, None)
_NO_TICK = dict.fromkeys(("deadline", "schedule", "tick", "catch_up", "event"))
_ROUTE = ("namespace", "app", "job", "queue", "job_version", "lane")
_BATCH = ("priority", "run_at", *_NO_TICK)
_of_route = attrgetter(*_ROUTE)
_of_batch = attrgetter(*_BATCH)
_of_origin = attrgetter(*(name for name in Origin.__struct_fields__ if name != "parent"))
_NAMES = (*_ROUTE, *_BATCH, *Origin.__struct_fields__)
_values = attrgetter(
    *(f"route.{name}" for name in _ROUTE), *_BATCH, *(f"origin.{name}" for name in Origin.__struct_fields__)
)


class Batch(msgspec.Struct, frozen=True):
    """Executions that differ in their ids and arguments only."""

    items: dict[str, str]
    """The arguments of each execution as JSON text, by its id."""
    route: Route
    origin: Origin
    priority: int
    run_at: int
    ranked_at: int | None = None
    """The instant that decides the rank, if it is not `run_at`."""
    deadline: int | None = None
    schedule: str | None = None
    tick: int | None = None
    catch_up: int | None = None
    event: str | None = None
    """The event that starts the executions, as JSON."""
    blockers: tuple[Blocker, ...] = ()
    """While it has any, it waits; once they are released it is ready, whatever `run_at` says."""
    step: StepOf | None = None
    """Which step of a run the executions are."""

    @property
    def run(self) -> str | None:
        return None if self.step is None else self.step.run

    @property
    def rank(self) -> int:
        ranked_at = self.run_at if self.ranked_at is None else self.ranked_at
        return rank(self.route.policy, ranked_at, self.priority)


def find_route(tx: Tx, namespace: str, app: str, job: str, queue: str, max_age_s: float = 0.0) -> Route | None:
    """None if no process has declared the job. The first execution for a queue that no definition names adds the queue.

    The route may be read from a cache and be `max_age_s` old.
    """
    where = {"namespace": namespace, "app": app, "job": job, "queue": queue}
    found = tx.recent("route", max_age_s, **where) if max_age_s else tx.one("route", **where)
    if not found and (known := tx.one("requirements_of", namespace=namespace, app=app, job=job)):
        tx.run("add_queues", namespace=namespace, queues=[(queue,)])
        tx.run("add_lanes", namespace=namespace, app=app, lanes=[(job, queue, *known)])
        found = tx.one("route", **where)
    if not found:
        return None
    version, lane, policy, max_depth, depends = found
    return Route(namespace, app, job, queue, version, lane, Policy(policy), max_depth, bool(depends))


def place(tx: Tx, batches: Sequence[Batch]) -> None:
    """Writes a batch with blockers as waiting, a batch that is not due as scheduled, and any other as ready."""
    if len(batches) == 1 and not batches[0].blockers and batches[0].step is None:
        _place_alike(tx, batches[0])
    elif batches:
        _place_rows(tx, batches)
        _count(tx, batches)
    if tagged := [batch for batch in batches if batch.origin.tags is not None]:
        tx.run("place_tags", rows=_tags(tagged))
    if called := [(id,) for one in batches if one.origin.callback is not None for id in one.items]:
        tx.run("place_callbacks", rows=called)
    if expiring := [(id, one.deadline) for one in batches if one.deadline is not None for id in one.items]:
        tx.run("place_expiries", rows=expiring)
        tx.tell(Due(min(deadline for _, deadline in expiring)))


def place_at_once(tx: Tx, columns: Mapping[str, Any], items: dict[str, str], skew: int) -> tuple[int, int] | None:
    """`place` for a batch that is due now, in one statement, which looks up the version, the lane and the policy.

    `columns` are the namespace, app, job, queue and priority, and those of an `Origin`, each by its name.

    Returns the version and the time; None, and nothing written, if the job or the queue is not known, the queue has a
    limit, or an id was made more than `skew` microseconds before or after the database's time. Every policy adds a
    number to the instant of the start, so these numbers are passed.
    """
    priority = columns["priority"]
    form, given = _given(items)
    placed = tx.one(
        "place_at_once" + form,
        fifo=rank(Policy.FIFO, 0, priority),
        priority_rank=rank(Policy.PRIORITY, 0, priority),
        first_made=made_at(min(items)),
        last_made=made_at(max(items)),
        skew=skew,
        **_NO_TICK,
        **given,
        **columns,
    )
    if placed is None:
        return None
    lane, rank_, version, now = placed
    tx.tell(Ready({lane: rank_}))
    return version, now


def arrive(tx: Tx, columns: Mapping[str, Any], id: str, arguments: str) -> int | None:
    """On SQLite: adds an execution that is due now to those that the next transaction places.

    `columns` are those of `place_at_once`. Returns the version of the job; None, and nothing written, if the cached
    route is no longer right, or the execution must be placed by a transaction for another reason.
    """
    where = {name: columns[name] for name in ("namespace", "app", "job", "queue")}
    found = tx.recent("route", ROUTE_AGE_S, **where)
    if not found:
        return None
    version, lane, policy, max_depth, depends = found
    if max_depth is not None or depends:
        return None
    place = rank(Policy(policy), tx.now, columns["priority"])
    route = {"lane": lane, "rank": place, "job_version": version, "policy": policy}
    if not tx.changed("arrive", id=id, arguments=arguments, **route, **columns):
        return None
    tx.tell(Ready({lane: place}))
    return cast("int", version)


def _place_alike(tx: Tx, batch: Batch) -> None:
    """One batch: its columns are sent once, however many items it has, and the same statement counts them."""
    if batch.run_at > tx.now:
        tx.run("place_alike_scheduled", items=batch.items, count=len(batch.items), **_columns(batch))
        tx.tell(Due(batch.run_at))
    else:
        form, given = _given(batch.items)
        place = batch.rank
        tx.run("place_alike_ready" + form, rank=place, count=len(batch.items), **given, **_columns(batch))
        tx.tell(Ready({batch.route.lane: place}))


def _given(items: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """The ending of the name of a statement that takes one item or many, and its parameters for these items."""
    if len(items) != 1:
        return "", {"items": items}
    ((id, arguments),) = items.items()
    return "_single", {"id": id, "arguments": arguments}


def _place_rows(tx: Tx, batches: Sequence[Batch]) -> None:
    """Several batches, in as few statements as one batch would take."""
    _insert(tx, batches)
    free = [batch for batch in batches if not batch.blockers]
    if later := [
        (id, one.route.lane, one.priority, one.run_at, one.run)
        for one in free
        if one.run_at > tx.now
        for id in one.items
    ]:
        tx.run("place_scheduled", rows=later)
        tx.tell(Due(min(row[3] for row in later)))
    if due := [(id, one.route.lane, one.rank, one.run) for one in free if one.run_at <= tx.now for id in one.items]:
        tx.run("place_ready", rows=due)
        tx.tell(Ready.of(row[1:3] for row in due))
    if blocked := [one for one in batches if one.blockers]:
        rows = [(id, one.route.lane, one.rank, one.run) for one in blocked for id in one.items]
        behind = [(id, one.rank, kind, key) for one in blocked for id in one.items for kind, key in one.blockers]
        tx.run("place_waiting", rows=rows, blockers=behind)


def _count(tx: Tx, batches: Sequence[Batch]) -> None:
    """Does not count a step that waits: it is in the lane of its workflow, and no worker runs it."""
    created: dict[int, int] = {}
    for batch in batches:
        if not (batch.step is not None and is_wait(batch.route.job)):
            created[batch.route.lane] = created.get(batch.route.lane, 0) + len(batch.items)
    if created:
        count_created(tx, created)


def _insert(tx: Tx, batches: Sequence[Batch]) -> None:
    """One statement for all batches whose origins differ only in the parent, such as the steps of many runs."""
    groups: dict[tuple[Any, ...], list[Batch]] = {}
    for batch in batches:
        groups.setdefault(_of_origin(batch.origin), []).append(batch)
    for group in groups.values():
        rows = [
            (
                *(*item, *_of_route(one.route), *_of_batch(one), one.origin.parent),
                *(one.step.columns(position) if one.step else _NO_STEP),
            )
            for one in group
            for position, item in enumerate(one.items.items())
        ]
        tx.run("place", rows=rows, **msgspec.structs.asdict(group[0].origin))


def _tags(batches: Sequence[Batch]) -> list[tuple[str, str, str]]:
    return [
        (batch.route.namespace, tag, id)
        for batch in batches
        for tag in _texts_of(batch.origin.tags or "[]")
        for id in batch.items
    ]


def _texts_of(stored: str) -> list[str]:
    """The tags, each once. A replay has those of its original, which may be any JSON."""
    try:
        return sorted(set(msgspec.json.decode(stored, type=list[str])))
    except msgspec.MsgspecError:
        return []


def _columns(batch: Batch) -> dict[str, Any]:
    """The columns that all executions of a batch share, by name."""
    return dict(zip(_NAMES, _values(batch), strict=True))
