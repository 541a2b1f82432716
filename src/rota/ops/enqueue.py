"""Accepting work: the only way an execution comes to be.

A submission is a header that its items share, and the items. What carries a key is looked at one by one, in the
transaction that inserts it, so that of any number of callers with one key exactly one creates the execution.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from rota.domain import backpressure, payload, rank, unique
from rota.domain.errors import ClockSkew, DefinitionError, KeyConflict, LeaseLost, NotUnique, QueueFull, UnknownJob
from rota.domain.lifecycle import Held
from rota.domain.status import Reason, Status
from rota.domain.unique import OnConflict, Unique
from rota.ids import made_at
from rota.ops import ending
from rota.store.hints import Due, Ready
from rota.store.port import NotNow, Tx, runs_at_once, runs_together

MICROSECONDS = 1_000_000
IDEMPOTENCY = "idempotency"
MOST_CLOCK_SKEW_S = 24 * 3600.0
MOST_LOCKS = 500
DEPTH_AGE_S = 0.2
"""How old the depth of a queue may be when its limit is checked: the limit may be overshot by what came since."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What all items of a submission share."""

    namespace: str
    app: str
    job: str
    queue: str
    actor: str = ""
    priority: int = 0
    delay_s: float = 0.0
    at: int | None = None
    start_by: int | None = None
    start_within_s: float | None = None
    key: str | None = None
    unique: Unique | None = None
    parent: str | None = None
    replay_of: str | None = None
    tags: str | None = None
    trace: str | None = None


class Item(msgspec.Struct, frozen=True, array_like=True):
    """One execution to be: its id and its arguments as JSON text."""

    id: str
    arguments: str


class Accepted(msgspec.Struct, frozen=True):
    """The execution that answers for an item, and whether this submission created it."""

    id: str
    created: bool


class _Route(msgspec.Struct, frozen=True):
    version: int
    lane: int
    policy: rank.Policy
    max_depth: int | None


def enqueue(tx: Tx, header: Header, items: list[Item]) -> list[Accepted]:
    """Accepts every item or none."""
    route = _route(tx, header)
    run_at = _run_at(tx, header)
    _check_ids(tx, items)
    if header.key is None and header.unique is None:
        _insert(tx, header, route, items, run_at)
        return [Accepted(item.id, True) for item in items]
    _lock_keys(tx, [(header, items)])
    return [_keyed(tx, header, route, item, run_at) for item in items]


def children(tx: Tx, parent: tuple[str, int], header: Header, items: list[Item]) -> list[Accepted]:
    """`enqueue` by an attempt of another execution, only while that is the one which counts."""
    id, fence = parent
    held = tx.records("held", Held, ids=[id])
    if not held or held[0].fence != fence:
        raise LeaseLost(f"attempt {fence} of execution {id} is no longer the one that counts: nothing was accepted")
    return enqueue(tx, header, items)


@runs_together(enqueue)
def _enqueue_together(tx: Tx, calls: Sequence[tuple[Any, ...]]) -> list[list[Accepted]]:
    """Many callers at once: those with one header and no key are one submission."""
    plain: dict[int, list[int]] = {}
    answers: list[list[Accepted]] = [[] for _ in calls]
    _lock_keys(tx, calls)
    for index, (header, items) in enumerate(calls):
        if header.key is None and header.unique is None:
            plain.setdefault(id(header), []).append(index)
        else:
            answers[index] = enqueue(tx, header, items)
    for indices in plain.values():
        accepted = iter(enqueue(tx, calls[indices[0]][0], [item for index in indices for item in calls[index][1]]))
        for index in indices:
            answers[index] = list(itertools.islice(accepted, len(calls[index][1])))
    return answers


def _joined(calls: Sequence[tuple[Any, ...]]) -> tuple[Header, list[Item]] | None:
    """Calls with one header, if nothing need be looked at and decided before their items are inserted."""
    header: Header = calls[0][0]
    at_once = not header.delay_s and header.at is None and header.start_by is None and header.start_within_s is None
    if not at_once or header.key is not None or header.unique is not None:
        return None
    if any(other is not header for other, _ in calls):
        return None
    items = [item for _, items in calls for item in items]
    return (header, items) if items else None


def _all_created(header: Header, items: list[Item]) -> list[Accepted]:
    return [Accepted(item.id, True) for item in items]


@runs_at_once(enqueue, answer=_all_created, joined=_joined)
def _enqueue_at_once(tx: Tx, header: Header, items: list[Item]) -> bool:
    """The most common call as one statement. Every policy adds to the time, so its part can be told beforehand."""
    ids = [item.id for item in items]
    placed = tx.one(
        "insert_at_once",
        items=items,
        namespace=header.namespace,
        app=header.app,
        job=header.job,
        actor=header.actor,
        queue=header.queue,
        priority=header.priority,
        parent=header.parent,
        replay_of=header.replay_of,
        tags=header.tags,
        trace=header.trace,
        fifo=rank.rank(rank.Policy.FIFO, 0, header.priority),
        priority_rank=rank.rank(rank.Policy.PRIORITY, 0, header.priority),
        first_made=made_at(min(ids)),
        last_made=made_at(max(ids)),
        skew=round(MOST_CLOCK_SKEW_S * MICROSECONDS),
    )
    if placed is not None:
        tx.tell(Ready({placed[0]: placed[1]}))
    return placed is not None


def _lock_keys(tx: Tx, calls: Sequence[tuple[Any, ...]]) -> None:
    """All keys at once, so that two transactions with the same keys cannot wait for each other."""
    jobs: dict[str, list[str]] = {}
    for header, items in calls:
        if keys := _keys(header, items):
            jobs.setdefault(f"{header.namespace} {header.app} {header.job}", []).extend(keys)
    if not jobs:
        return
    wanted = [lock for job, keys in jobs.items() for lock in _locks(job, keys)]
    is_ours, isolation = tx.one("lock_keys", keys=wanted, waits=tx.waits) or (0, "")
    if not is_ours:
        named = ", ".join(sorted(job.split(" ")[2] for job in jobs))
        raise NotNow(
            f"an open transaction holds a key that this call has, too (job {named}): `rota doctor` names transactions "
            "that are open for long"
        )
    if isolation != "read committed" and any(header.unique is not None for header, _ in calls):
        raise DefinitionError(
            f"unique= must see what runs now, and this transaction sees what ran when it began ({isolation}): "
            "use READ COMMITTED, or enqueue after it"
        )


def _locks(job: str, keys: list[str]) -> list[tuple[str, bool]]:
    """What to lock, and whether others may share it. A server has room for some thousands of locks, not for more."""
    if len(keys) > MOST_LOCKS:
        return [(job, False)]
    return [(job, True), *((f"{job} {key}", False) for key in keys)]


def _keys(header: Header, items: Sequence[Item]) -> list[str]:
    keys = [] if header.key is None else [f"{IDEMPOTENCY} {header.key}"]
    if header.unique is not None:
        kind, named = _unique_kind(header.unique), header.unique.key
        keys += [f"{kind} {named}"] if named else [f"{kind} {_digest(item.arguments)}" for item in items]
    return keys


def _check_ids(tx: Tx, items: Sequence[Item]) -> None:
    """An id says when it was made, and history is kept by that time: a clock that is days off would misplace it."""
    for item in (items[0], items[-1]) if items else ():
        off_s = (made_at(item.id) - tx.now) / MICROSECONDS
        if abs(off_s) > MOST_CLOCK_SKEW_S:
            raise ClockSkew(
                f"this machine's clock is {abs(off_s) / 3600:.0f} hours {'ahead of' if off_s > 0 else 'behind'} the "
                "database's: nothing was accepted. Set it right (NTP), then try again"
            )


def _route(tx: Tx, header: Header) -> _Route:
    version, lane, policy, max_depth = _known_route(tx, header) or _new_route(tx, header)
    return _Route(version, lane, rank.Policy(policy), max_depth)


def _known_route(tx: Tx, header: Header) -> tuple[Any, ...] | None:
    return tx.one("route", namespace=header.namespace, app=header.app, job=header.job, queue=header.queue)


def _new_route(tx: Tx, header: Header) -> tuple[Any, ...]:
    """The first enqueue to a queue that no definition names brings the queue into being."""
    add_lane(tx, header.namespace, header.app, header.job, header.queue)
    found = _known_route(tx, header)
    if found is None:
        raise UnknownJob(
            f"app {header.app!r} has no job {header.job!r}: check the name, or start a worker of the app once "
            "so that its jobs are known"
        )
    return found


def add_lane(tx: Tx, namespace: str, app: str, job: str, queue: str) -> None:
    """A way for a job's executions through a queue, if the job is known."""
    known = tx.one("requirements_of", namespace=namespace, app=app, job=job)
    if known is not None:
        tx.run("add_queues", namespace=namespace, queues=[(queue,)])
        tx.run("add_lanes", namespace=namespace, app=app, lanes=[(queue, known[0])])


def _check_depth(tx: Tx, header: Header, arriving: int, max_depth: int) -> None:
    where = {"namespace": header.namespace, "queue": header.queue}
    depth = tx.recent("queue_depth", DEPTH_AGE_S, **where, most=max_depth + 1)
    if backpressure.admits(depth[0], arriving, max_depth):
        depth[0] += arriving
        return
    oldest = tx.one("queue_oldest", **where)
    waited_s = (tx.now - oldest[0]) / MICROSECONDS if oldest and oldest[0] else 0.0
    after_s = backpressure.retry_after_s(waited_s)
    raise QueueFull(
        f"queue {header.queue!r} is full ({depth[0]} of {max_depth} queued): nothing was accepted, "
        f"retry after {after_s:g} s",
        after_s,
    )


def _run_at(tx: Tx, header: Header) -> int:
    if header.at is not None:
        return max(header.at, tx.now)
    return tx.now + round(header.delay_s * MICROSECONDS)


def _insert(tx: Tx, header: Header, route: _Route, items: list[Item], run_at: int) -> None:
    # Only here, so that a full queue still answers for a key that it knows.
    if route.max_depth is not None:
        _check_depth(tx, header, len(items), route.max_depth)
    deadline = header.start_by
    if deadline is None and header.start_within_s is not None:
        deadline = run_at + round(header.start_within_s * MICROSECONDS)
    is_due = run_at <= tx.now
    place = rank.rank(route.policy, run_at, header.priority)
    tx.run(
        "insert_ready" if is_due else "insert_executions",
        items=items,
        namespace=header.namespace,
        app=header.app,
        job=header.job,
        version=route.version,
        actor=header.actor,
        queue=header.queue,
        lane=route.lane,
        priority=header.priority,
        key=header.key,
        run_at=run_at,
        deadline=deadline,
        parent=header.parent,
        replay_of=header.replay_of,
        tags=header.tags,
        trace=header.trace,
        **({"rank": place} if is_due else {}),
    )
    if deadline is not None:
        tx.run("insert_expiries", items=items, deadline=deadline)
        tx.tell(Due(deadline))
    if is_due:
        tx.tell(Ready({route.lane: place}))
    else:
        tx.run("insert_scheduled", items=items, lane=route.lane, priority=header.priority, run_at=run_at)
        tx.tell(Due(run_at))


def _keyed(tx: Tx, header: Header, route: _Route, item: Item, run_at: int) -> Accepted:
    hashed = _digest(item.arguments)
    if header.key is not None:
        known = _holder(tx, header, IDEMPOTENCY, header.key)
        if known is not None:
            return _same_request(tx, header, item, hashed, known)
    if header.unique is not None:
        key = header.unique.key or hashed
        existing = _conflict(tx, header, header.unique, key, item.id, run_at)
        if existing is not None:
            return Accepted(existing, existing == item.id)
        _take(tx, header, _unique_kind(header.unique), key, item.id, hashed)
    if header.key is not None:
        _take(tx, header, IDEMPOTENCY, header.key, item.id, hashed)
    _insert(tx, header, route, [item], run_at)
    return Accepted(item.id, True)


def _same_request(tx: Tx, header: Header, item: Item, hashed: str, known: tuple[str, str, int]) -> Accepted:
    holder, known_hash, _ = known
    if known_hash == hashed:
        # If it is the holder's own, this is the repeat of a commit that was in doubt.
        return Accepted(holder, holder == item.id)
    before = tx.one("arguments_of", id=holder)
    raise KeyConflict(
        f"the key {header.key!r} belongs to execution {holder} of job {header.job!r} with the arguments "
        f"{_short(before[0] if before else '(pruned)')}; this call has {_short(item.arguments)}. "
        "Use another key, or the same arguments."
    )


def _conflict(tx: Tx, header: Header, wanted: Unique, key: str, newcomer: str, run_at: int) -> str | None:
    """The execution that keeps the newcomer out, after the conflict action; None if the way is free."""
    known = _holder(tx, header, _unique_kind(wanted), key)
    if known is None:
        return None
    holder, _, taken_at = known
    if holder == newcomer:
        return holder  # The repeat of a commit that was in doubt, and has landed.
    found = tx.one("status_of", id=holder, namespace=header.namespace)
    status = Status(found[0]) if found else None
    if not unique.holds(wanted.kind(), wanted.window_s(), status, taken_at, tx.now):
        return None
    match OnConflict(wanted.on_conflict):
        case OnConflict.RETURN:
            return holder
        case OnConflict.REJECT:
            raise NotUnique(
                f"job {header.job!r} already has execution {holder} ({status or 'ended'}) for the unique key {key!r}",
                holder,
            )
        case OnConflict.REPLACE:
            ending.end(tx, header.namespace, holder, Status.CANCELLED, Reason.REPLACED)
            return None
        case OnConflict.DEBOUNCE:
            return holder if _push_back(tx, header, holder, run_at) else None


def _push_back(tx: Tx, header: Header, holder: str, run_at: int) -> bool:
    """Moves the holder's start; False if it has begun, and then the newcomer must run too or its news is lost."""
    for _ in range(ending.MOST_LOOKS):
        found = tx.one("status_of", id=holder, namespace=header.namespace)
        status = Status(found[0]) if found else None
        if status is Status.QUEUED:
            moved = tx.run("unready", id=holder, run_at=run_at)
        elif status in (Status.SCHEDULED, Status.RETRYING):
            moved = tx.run("push_back", id=holder, run_at=run_at)
        else:
            return False
        if moved:
            tx.tell(Due(run_at))
            return True
    return False


def _holder(tx: Tx, header: Header, kind: str, key: str) -> tuple[str, str, int] | None:
    found = tx.one("key_holder", namespace=header.namespace, app=header.app, job=header.job, kind=kind, key=key)
    return None if found is None else (found[0], found[1], found[2])


def _take(tx: Tx, header: Header, kind: str, key: str, holder: str, hashed: str) -> None:
    tx.run(
        "take_key",
        namespace=header.namespace,
        app=header.app,
        job=header.job,
        kind=kind,
        key=key,
        holder=holder,
        arguments_hash=hashed,
    )


def _digest(arguments: str) -> str:
    """The same for the same arguments, in whatever order a caller names them, and whoever accepts them."""
    return hashlib.sha256(payload.canonical(arguments).encode()).hexdigest()


def _unique_kind(wanted: Unique) -> str:
    return f"unique:{wanted.kind()}"


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"
