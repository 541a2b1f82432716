"""Submissions with keys: which items are new, and which executions answer for the others.

The keys of all items are locked, looked up and taken at once, in the transaction that places the new items.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import payload, unique
from rota.domain.errors import KeyConflict
from rota.domain.status import PENDING, Reason, Status
from rota.domain.unique import OnConflict, Unique
from rota.ops import ending, keys
from rota.ops.ending import Pending, Standing
from rota.ops.keys import IDEMPOTENCY, Named, Owner, Wanted
from rota.ops.submission import Accepted, Header, Item
from rota.store.hints import Due
from rota.store.port import Tx


class Resolved(msgspec.Struct, frozen=True):
    """What becomes of the items of a submission."""

    answers: list[Accepted]
    """For each item the execution that answers for it."""
    new: list[Item]
    """The items to place."""
    replaced: list[str] = []
    """New items that a later item of the same submission replaces: to be ended after they are placed."""


def lock(tx: Tx, calls: Sequence[tuple[Header, list[Item]]]) -> None:
    """Locks all keys of all calls until the commit."""
    wanted = [one for header, items in calls for one in (_named(header), _unique(header, items)) if one is not None]
    if wanted:
        keys.lock(tx, wanted)


def resolve(tx: Tx, header: Header, items: list[Item]) -> Resolved:
    """Decides for each item, takes the keys, and ends the executions that are replaced. The keys are locked."""
    if header.key is not None:
        return _resolve_named(tx, header, header.key, items)
    if header.unique is not None:
        return _resolve_unique(tx, header, header.unique, items)
    return Resolved([Accepted(item.id, True) for item in items], items)


def end_replaced(tx: Tx, resolved: Resolved) -> None:
    """To be called once the new items are placed."""
    if resolved.replaced:
        ending.end_pending(tx, resolved.replaced, Status.CANCELLED, Reason.REPLACED)


def _named(header: Header) -> Wanted | None:
    return None if header.key is None else Wanted(_owner(header), IDEMPOTENCY, [header.key])


def _unique(header: Header, items: Sequence[Item]) -> Wanted | None:
    wanted = header.unique
    if wanted is None:
        return None
    named = [wanted.key] if wanted.key else [item.hashed() for item in items]
    return Wanted(_owner(header), f"unique:{wanted.kind()}", named)


def _owner(header: Header) -> Owner:
    return Owner(header.namespace, header.app, header.job)


def _resolve_named(tx: Tx, header: Header, key: str, items: list[Item]) -> Resolved:
    """An idempotency key names the execution that answers for the first item, as long as the history is kept."""
    known = keys.holders(tx, Wanted(_owner(header), IDEMPOTENCY, [key])).get(key)
    if known is not None:
        return Resolved([_same_request(tx, header, item, known) for item in items], [])
    first, *rest = items
    if header.unique is not None:
        resolved = _resolve_unique(tx, header, header.unique, [first])
    else:
        resolved = Resolved([Accepted(first.id, True)], [first])
    holder = resolved.answers[0].id
    keys.take(tx, _owner(header), IDEMPOTENCY, [(key, holder, first.hashed())])
    known = Named(key, holder, first.hashed(), tx.now)
    resolved.answers.extend(_same_request(tx, header, item, known) for item in rest)
    return resolved


def _same_request(tx: Tx, header: Header, item: Item, known: Named) -> Accepted:
    if known.arguments_hash == item.hashed():
        # If the holder is the item itself, this is the repeat of a commit that was in doubt.
        return Accepted(known.holder, known.holder == item.id)
    found = tx.one("arguments_of", id=known.holder)
    before = found[0] if found else "(pruned)"
    # A unique key may have answered the call that took the key, with an execution of other arguments.
    is_its_own = found is None or payload.digest(before) == known.arguments_hash
    raise KeyConflict(
        f"the key {header.key!r} belongs to execution {known.holder} of job {header.job!r} with the arguments "
        f"{_short(before)}{'' if is_its_own else ', which answered a call with others'}; this call has "
        f"{_short(item.arguments)}. Use another key, or the same arguments."
    )


def _resolve_unique(tx: Tx, header: Header, wanted: Unique, items: list[Item]) -> Resolved:
    """Each item is new, or the holder of its unique key answers for it."""
    newcomers = [unique.Newcomer(item.id, wanted.key or item.hashed(), item.hashed()) for item in items]
    holders, standings = _holders(tx, header, items)
    run_at = header.run_at(tx.now)
    moved: set[str] = set()
    if holders and wanted.on_conflict == OnConflict.DEBOUNCE:
        conflicting = unique.conflicting(wanted, newcomers, holders, tx.now)
        moved = _push_back(tx, header, [standings[one.id] for one in conflicting if one.id in standings], run_at)
    status = Status.QUEUED if run_at <= tx.now else Status.SCHEDULED
    decided = unique.resolve(wanted, newcomers, holders, moved, tx.now, job=header.job, status=status)
    if old := [standings[id] for id in decided.replaced if id in standings]:
        ending.end_all(tx, header.namespace, [one.id for one in old], Status.CANCELLED, Reason.REPLACED, old)
    if decided.keys:
        taken = [(key, one.id, one.digest) for key, one in decided.keys.items()]
        keys.take(tx, _owner(header), f"unique:{wanted.kind()}", taken)
    new = [items[place] for place in decided.created]
    placed = {item.id for item in new} if decided.replaced else set()
    answers = [Accepted(answer, answer == one.id) for one, answer in zip(newcomers, decided.answers, strict=True)]
    return Resolved(answers, new, [id for id in decided.replaced if id in placed])


def _holders(tx: Tx, header: Header, items: Sequence[Item]) -> tuple[dict[str, unique.Holder], dict[str, Standing]]:
    """The holders of the items' unique keys, by key; and the state of each, by id."""
    wanted = _unique(header, items)
    assert wanted is not None, "only a submission with unique keys has holders of them"
    named = keys.holders(tx, wanted)
    if not named:
        return {}, {}
    ids = {one.holder for one in named.values()}
    standings = {one.id: one for one in ending.standings(tx, header.namespace, ids)}
    return {
        key: unique.Holder(one.holder, standings[one.holder].status if one.holder in standings else None, one.taken_at)
        for key, one in named.items()
    }, standings


def _push_back(tx: Tx, header: Header, holders: Sequence[Standing], run_at: int) -> set[str]:
    """Moves the starts of the holders that have not begun, and returns these.

    For a holder that has begun, the newcomer must run too: its arguments may be newer than what the holder has read.
    """
    deadlines = {one.id: one.deadline for one in holders}
    left, moved = [one.id for one in holders if one.status in PENDING], set[str]()
    for _ in range(ending.MOST_LOOKS):
        if not left:
            break
        rows = tx.records("pending", Pending, ids=left)
        _postpone(tx, header, rows, deadlines, run_at)
        moved.update(row.id for row in rows)
        # An execution that moves from one table to another during the look is in none of them.
        left = [id for id in left if id not in moved]
        left = [one.id for one in ending.standings(tx, header.namespace, left) if one.status in PENDING] if left else []
    if moved:
        tx.tell(Due(run_at))
    return moved


_POSTPONE = {
    Status.SCHEDULED: "postpone_scheduled",
    Status.WAITING: "postpone_waiting",
    Status.QUEUED: "postpone_queued",
}


def _postpone(tx: Tx, header: Header, rows: list[Pending], deadlines: dict[str, int | None], run_at: int) -> None:
    for place, statement in _POSTPONE.items():
        if ids := [row.id for row in rows if row.place is place]:
            tx.run(statement, ids=ids, run_at=run_at)
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
