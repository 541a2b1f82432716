"""The keys of a submission: which of its items are new, and which executions answer for the others.

All keys are locked, looked up and taken by a few statements, however many there are, in the transaction that places the
new items. The locks are held until the commit, so that of any number of callers with one key exactly one creates the
execution. On PostgreSQL they are advisory locks, taken in the order of their hashes to avoid a deadlock. SQLite has one
writer.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import payload, unique
from rota.domain.errors import DefinitionError, KeyConflict, KeyReused
from rota.domain.status import PENDING, Reason, Status
from rota.domain.unique import OnConflict, Unique
from rota.ops import end_from_outside
from rota.ops.end_from_outside import CurrentStatus, Pending
from rota.ops.submission import Accepted, Header, Item
from rota.store.hints import Due
from rota.store.port import NotNow, Tx

IDEMPOTENCY = "idempotency"
REQUEST = "request"
"""The kind of the keys of HTTP requests. They belong to no job, so the use of a key for another job is detected."""
MOST_LOCKS = 500
"""A call with more keys locks its whole job: a server has room for some thousands of locks."""
_BY_UNIQUE_KEY = ", which a unique key returned to a call with other arguments"


class Resolved(msgspec.Struct, frozen=True):
    """The decisions about the items of a submission."""

    answers: list[Accepted]
    """For each item the execution that answers for it."""
    new: list[Item]
    """The items to place."""
    replaced: list[str] = []
    """New items that a later item of the same submission replaces. They are placed, and then ended."""


class Taken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A key that is taken: the execution it names, and the arguments and the time of the call that took it."""

    key: str
    holder: str
    arguments_hash: str
    taken_at: int


def lock(tx: Tx, calls: Sequence[tuple[Header, list[Item]]]) -> None:
    """Locks all keys of all calls, each a header and its items, in one statement and in the same order everywhere."""
    jobs = _lock_names(calls)
    if not jobs:
        return
    # Each row is a name and whether its lock is shared. With too many keys the lock of the job is exclusive instead.
    locks = [(job, len(names) <= MOST_LOCKS) for job, names in jobs.items()]
    locks += [(name, False) for names in jobs.values() if len(names) <= MOST_LOCKS for name in names]
    is_ours, isolation = tx.one("lock_keys", keys=locks, waits=tx.waits) or (0, "")
    if not is_ours:
        named = ", ".join(sorted({job.split(" ")[-1] for job in jobs}))
        raise NotNow(
            f"another open transaction holds a key of this call (job {named}): `rota doctor` lists transactions that "
            "have been open for long"
        )
    if isolation != "read committed" and any(header.unique is not None for header, _ in calls):
        raise DefinitionError(
            "unique= must see the executions of this moment, but the snapshot of this transaction is older "
            f"({isolation}): use READ COMMITTED, or enqueue after it"
        )


def lock_request(tx: Tx, namespace: str, requests: str, key: str) -> None:
    """Locks the key of a request that enqueues nothing. While another transaction has it, this one is postponed."""
    name = _request_lock(f"{namespace} {REQUEST}", requests, key)
    is_ours, _ = tx.one("lock_keys", keys=[(name, False)], waits=tx.waits) or (0, "")
    if not is_ours:
        raise NotNow(f"an earlier request with the Idempotency-Key {key!r} is still in progress")


def _request_lock(scope: str, requests: str, key: str) -> str:
    return f"{scope} {requests} {key}"


def _lock_names(calls: Sequence[tuple[Header, list[Item]]]) -> dict[str, list[str]]:
    """By job, a name to lock for each of its keys."""
    jobs: dict[str, list[str]] = {}
    for header, items in calls:
        if header.is_keyed:
            job = " ".join(_job(header).values())
            names = jobs.setdefault(job, [])
            if header.key is not None:
                names.append(f"{job} {IDEMPOTENCY} {header.key}")
            if header.unique is not None:
                names += [f"{job} {_kind(header.unique)} {key}" for key in _unique_keys(header.unique, items)]
        if header.requests is not None:
            scope = f"{header.namespace} {REQUEST}"
            # The items of one request have one lock.
            given = dict.fromkeys(item.request.partition(" ")[0] for item in items)
            jobs.setdefault(scope, []).extend(_request_lock(scope, header.requests, key) for key in given)
    return jobs


def resolve(tx: Tx, header: Header, items: list[Item]) -> Resolved:
    """Decides for each item, takes the keys, and ends the executions that are replaced. The keys are locked."""
    if header.requests is not None:
        return _resolve_requests(tx, header, items)
    return _resolve_rest(tx, header, items)


def _resolve_rest(tx: Tx, header: Header, items: list[Item]) -> Resolved:
    """`resolve` without the keys of requests."""
    if header.key is not None:
        return _resolve_named(tx, header, header.key, items)
    if header.unique is not None:
        return _resolve_unique(tx, header, header.unique, items)
    return Resolved([Accepted(item.id, True) for item in items], items)


def end_replaced(tx: Tx, resolved: Resolved) -> None:
    """To be called once the new items are placed."""
    if resolved.replaced:
        end_from_outside.end_pending(tx, resolved.replaced, Status.CANCELLED, Reason.REPLACED)


def take(tx: Tx, header: Header, kind: str, rows: list[tuple[str, str, str]]) -> None:
    """Each row is a key, the execution that it names from now on, and the hash of the arguments."""
    # Sorted, so that neighbours in the index are written one after the other.
    tx.run("take_keys", rows=sorted(rows), kind=kind, **_job(header))


def _resolve_requests(tx: Tx, header: Header, items: list[Item]) -> Resolved:
    """An item whose request was made before gets the same answer. The others are decided as without requests."""
    kept = {item.id: f"{header.requests} {item.request}" for item in items}
    where = {"namespace": header.namespace, "app": "", "job": ""}
    found = tx.records("key_holders", Taken, keys=list(kept.values()), kind=REQUEST, **where)
    known = {one.key: one for one in found}
    fresh = [item for item in items if kept[item.id] not in known]
    resolved = _resolve_rest(tx, header, fresh) if fresh else Resolved([], [])
    rows = [
        (kept[item.id], answer.id, unique.request_mark(item.request_digest, created=answer.created))
        for item, answer in zip(fresh, resolved.answers, strict=True)
    ]
    if rows:
        tx.run("take_keys", rows=sorted(rows), kind=REQUEST, **where)
    answers = iter(resolved.answers)
    merged = [_replayed(item, known[kept[item.id]]) if kept[item.id] in known else next(answers) for item in items]
    return Resolved(merged, resolved.new, resolved.replaced)


def _replayed(item: Item, known: Taken) -> Accepted:
    created = unique.was_created(known.arguments_hash, item.request_digest)
    if created is None:
        key = item.request.partition(" ")[0]
        raise KeyReused(f"the Idempotency-Key {key!r} was used for another request: choose a new key")
    # If the holder is the item itself, this is the repeat of a commit that was in doubt.
    return Accepted(known.holder, created, is_replayed=known.holder != item.id)


def _holders(tx: Tx, header: Header, kind: str, keys: list[str]) -> dict[str, Taken]:
    """Those of the keys that are taken."""
    return {one.key: one for one in tx.records("key_holders", Taken, keys=keys, kind=kind, **_job(header))}


def _job(header: Header) -> dict[str, str]:
    """The job that keys belong to."""
    return {"namespace": header.namespace, "app": header.app, "job": header.job}


def _kind(wanted: Unique) -> str:
    return f"unique:{wanted.kind()}"


def _unique_keys(wanted: Unique, items: Sequence[Item]) -> list[str]:
    return [wanted.key] if wanted.key else [item.hashed() for item in items]


def _resolve_named(tx: Tx, header: Header, key: str, items: list[Item]) -> Resolved:
    """An idempotency key names the execution that answers for the first item, as long as the history is kept."""
    known = _holders(tx, header, IDEMPOTENCY, [key]).get(key)
    if known is not None:
        return Resolved([_same_request(tx, header, item, known) for item in items], [])
    first, *rest = items
    if header.unique is not None:
        resolved = _resolve_unique(tx, header, header.unique, [first])
    else:
        resolved = Resolved([Accepted(first.id, True)], [first])
    holder = resolved.answers[0].id
    take(tx, header, IDEMPOTENCY, [(key, holder, first.hashed())])
    known = Taken(key, holder, first.hashed(), tx.now)
    resolved.answers.extend(_same_request(tx, header, item, known) for item in rest)
    return resolved


def _same_request(tx: Tx, header: Header, item: Item, known: Taken) -> Accepted:
    if known.arguments_hash == item.hashed():
        # If the holder is the item itself, this is the repeat of a commit that was in doubt.
        return Accepted(known.holder, known.holder == item.id)
    found = tx.one("arguments_of", id=known.holder)
    before = found[0] if found else "(pruned)"
    # A unique key may have answered the call that took the key, with an execution of other arguments.
    is_its_own = found is None or payload.digest(before) == known.arguments_hash
    raise KeyConflict(
        f"the key {header.key!r} belongs to execution {known.holder} of job {header.job!r} with the arguments "
        f"{_short(before)}{'' if is_its_own else _BY_UNIQUE_KEY}; this call has {_short(item.arguments)}. Use another "
        "key, or the same arguments."
    )


def _resolve_unique(tx: Tx, header: Header, wanted: Unique, items: list[Item]) -> Resolved:
    """Each item is new, or the holder of its unique key answers for it."""
    newcomers = [unique.Newcomer(item.id, wanted.key or item.hashed(), item.hashed()) for item in items]
    known = _holders(tx, header, _kind(wanted), _unique_keys(wanted, items))
    ids = {one.holder for one in known.values()}
    current = {one.id: one for one in end_from_outside.current_statuses(tx, header.namespace, ids)} if ids else {}
    status_of = {id: one.status for id, one in current.items()}
    holders = {key: unique.Holder(one.holder, status_of.get(one.holder), one.taken_at) for key, one in known.items()}
    run_at = header.run_at(tx.now)
    moved: set[str] = set()
    if holders and wanted.on_conflict == OnConflict.DEBOUNCE:
        conflicting = unique.conflicting(wanted, newcomers, holders, tx.now)
        moved = _push_back(tx, header, [current[one.id] for one in conflicting if one.id in current], run_at)
    status = Status.QUEUED if run_at <= tx.now else Status.SCHEDULED
    decided = unique.resolve(wanted, newcomers, holders, moved, tx.now, job=header.job, status=status)
    if old := [current[id] for id in decided.replaced if id in current]:
        end_from_outside.end_all(tx, header.namespace, [one.id for one in old], Status.CANCELLED, Reason.REPLACED, old)
    if decided.keys:
        take(tx, header, _kind(wanted), [(key, one.id, one.digest) for key, one in decided.keys.items()])
    new = [items[place] for place in decided.created]
    placed = {item.id for item in new} if decided.replaced else set()
    answers = [Accepted(answer, answer == one.id) for one, answer in zip(newcomers, decided.answers, strict=True)]
    return Resolved(answers, new, [id for id in decided.replaced if id in placed])


def _push_back(tx: Tx, header: Header, holders: Sequence[CurrentStatus], run_at: int) -> set[str]:
    """Postpones the holders that have not begun, and returns their ids.

    A holder that has begun may have read older arguments, so the newcomer runs too.
    """
    deadlines = {one.id: one.deadline for one in holders}
    left, moved = [one.id for one in holders if one.status in PENDING], set[str]()
    for _ in range(end_from_outside.MOST_LOOKS):
        if not left:
            break
        rows = tx.records("pending", Pending, ids=left)
        _postpone(tx, header, rows, deadlines, run_at)
        moved.update(row.id for row in rows)
        # An execution that moves from one table to another during the read may be found in neither: read again.
        left = [id for id in left if id not in moved]
        known = end_from_outside.current_statuses(tx, header.namespace, left) if left else []
        left = [one.id for one in known if one.status in PENDING]
    if moved:
        tx.tell(Due(run_at))
    return moved


def _postpone(tx: Tx, header: Header, rows: list[Pending], deadlines: dict[str, int | None], run_at: int) -> None:
    tx.run("postpone", run_at=run_at, **end_from_outside.by_place(rows))
    changed = []
    for row in rows:
        start, before = max(row.due_at or run_at, run_at), deadlines[row.id]
        after = unique.pushed_deadline(before, start, header.start_by, header.start_within_s)
        if after != before:
            changed.append((row.id, after))
    if changed:
        tx.run("move_deadlines", rows=changed)
        for deadline in {after for _, after in changed if after is not None}:
            tx.tell(Due(deadline))


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"
