"""The keys of a submission: locked, looked up and taken by a few statements, however many there are.

The locks are held until the commit, so that of any number of callers with one key exactly one creates the execution.
On PostgreSQL they are advisory locks, taken in the order of their hashes to avoid a deadlock. SQLite has one writer.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.errors import DefinitionError
from rota.store.port import NotNow, Tx

IDEMPOTENCY = "idempotency"
MOST_LOCKS = 500
"""A call with more keys locks its whole job: a server has room for some thousands of locks."""


class Owner(msgspec.Struct, frozen=True):
    """The job that keys belong to."""

    namespace: str
    app: str
    job: str


class Named(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A key that is taken: the execution it names, and the arguments and the time of the call that took it."""

    key: str
    holder: str
    arguments_hash: str
    taken_at: int


class Wanted(msgspec.Struct, frozen=True):
    """Keys of one kind that a call needs."""

    owner: Owner
    kind: str
    keys: list[str]


def lock(tx: Tx, wanted: Sequence[Wanted]) -> None:
    """Locks the keys of all calls of a transaction in one statement, in the same order everywhere: no deadlock."""
    jobs: dict[Owner, list[Wanted]] = {}
    for one in wanted:
        jobs.setdefault(one.owner, []).append(one)
    locks = [found for owner, several in jobs.items() for found in _locks(owner, several)]
    is_ours, isolation = tx.one("lock_keys", keys=locks, waits=tx.waits) or (0, "")
    if not is_ours:
        named = ", ".join(sorted({owner.job for owner in jobs}))
        raise NotNow(
            f"an open transaction holds a key that this call has, too (job {named}): `rota doctor` names transactions "
            "that are open for long"
        )
    if isolation != "read committed" and any(one.kind != IDEMPOTENCY for one in wanted):
        raise DefinitionError(
            "unique= must see the executions of this moment, but the snapshot of this transaction is older "
            f"({isolation}): use READ COMMITTED, or enqueue after it"
        )


def _locks(owner: Owner, wanted: Sequence[Wanted]) -> list[tuple[str, bool]]:
    """The names to lock, and whether the lock is shared."""
    job = f"{owner.namespace} {owner.app} {owner.job}"
    if sum(len(one.keys) for one in wanted) > MOST_LOCKS:
        return [(job, False)]
    return [(job, True), *((f"{job} {one.kind} {key}", False) for one in wanted for key in one.keys)]


def holders(tx: Tx, wanted: Wanted) -> dict[str, Named]:
    """Those of the keys that are taken."""
    found = tx.records("key_holders", Named, keys=wanted.keys, kind=wanted.kind, **_asdict(wanted.owner))
    return {one.key: one for one in found}


def take(tx: Tx, owner: Owner, kind: str, rows: list[tuple[str, str, str]]) -> None:
    """Each row is a key, the execution that it names from now on, and the hash of the arguments."""
    # Sorted, so that neighbours in the index are written one after the other.
    tx.run("take_keys", rows=sorted(rows), kind=kind, **_asdict(owner))


_asdict = msgspec.structs.asdict
