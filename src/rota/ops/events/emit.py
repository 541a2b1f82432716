"""Emitting events, in one transaction: resolves keys, inserts the events, and delivers to the first subscribers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

import msgspec

from rota.domain.errors import KeyConflict
from rota.ops.events.deliver import deliver
from rota.ops.events.matching import Emitted, Pair, subscriptions
from rota.ops.keys import MOST_LOCKS
from rota.ops.submission import Accepted, check_ids
from rota.store.hints import Due
from rota.store.port import NotNow, Tx, operation

KIND = "event"
"""The kind of the keys of events in `unique_key`. The column `job` has the name of the event."""
MOST = 100
"""How many subscriptions of each event the transaction of an emit delivers to. Upkeep delivers to the others."""
MOST_TOGETHER = 1000
"""The same for all events of a transaction with several events."""


class Emission(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event to emit. `digest` is the hash of the payload, which an event with a key needs."""

    id: str
    name: str
    payload: str
    subject: str = ""
    key: str | None = None
    digest: str = ""
    replay_of: str | None = None


class EmitHeader(msgspec.Struct, frozen=True):
    """The values that all events of one call share.

    `delivers_later`: upkeep delivers the events after the commit. This is for transactions of the caller, which may be
    open for long and must not lock rows of executions and runs, and whose snapshot may be old.
    """

    namespace: str
    actor: str
    delivers_later: bool = False
    key_kind: str = KIND
    """The kind of the events' keys in `unique_key`."""


@operation(is_large=True, together=lambda tx, calls: _emit_together(tx, calls))
def emit(tx: Tx, header: EmitHeader, emissions: Sequence[Emission]) -> list[Accepted]:
    """Emits all events or none. If an event with the key of an emission exists, the answer names that event."""
    answers, pairs = _accept(tx, header, emissions)
    deliver(tx, pairs, is_new=True)
    return answers


def open_events(tx: Tx, rows: Sequence[tuple[str, str]], *, is_replay: bool = False) -> None:
    """Leaves the delivery of events to upkeep. Each row is an event, and the last subscriber that has been checked."""
    if rows:
        tx.run("open_events", rows=rows, is_replay=int(is_replay))
        tx.tell(Due(tx.now))


def _emit_together(tx: Tx, calls: Sequence[tuple[Any, ...]]) -> list[list[Accepted]]:
    """`emit` for the calls of several callers. Calls with the same header are handled as one."""
    answers: list[list[Accepted]] = [[] for _ in calls]
    pairs: list[Pair] = []
    by_header: dict[EmitHeader, list[int]] = {}
    for index, (header, _) in enumerate(calls):
        by_header.setdefault(header, []).append(index)
    for header, indices in by_header.items():
        accepted, more = _accept(tx, header, [one for index in indices for one in calls[index][1]])
        pairs += more
        left = iter(accepted)
        for index in indices:
            answers[index] = list(islice(left, len(calls[index][1])))
    deliver(tx, pairs, is_new=True)
    return answers


def _accept(tx: Tx, header: EmitHeader, emissions: Sequence[Emission]) -> tuple[list[Accepted], list[Pair]]:
    """Inserts the events that are new. Returns the answers, and the deliveries to try in this transaction."""
    check_ids(tx.now, [one.id for one in emissions])
    answers, new = _resolve(tx, header, emissions)
    if not new:
        return answers, []
    rows = [(one.id, one.name, one.subject, one.key, one.payload, one.replay_of) for one in new]
    tx.run("add_events", rows=rows, namespace=header.namespace, actor=header.actor)
    if header.delivers_later:
        open_events(tx, [(one.id, "") for one in new])
        return answers, []
    return answers, _first_pairs(tx, header.namespace, new)


def _first_pairs(tx: Tx, namespace: str, new: Sequence[Emission]) -> list[Pair]:
    """Each event with its first subscriptions. Further subscriptions are left to upkeep."""
    wanted = {row[0] for row in tx.rows("subscribed_names", namespace=namespace, names=_names(new))}
    pairs: list[Pair] = []
    left: list[tuple[str, str]] = []
    for (name, subject), group in groupby(sorted((one for one in new if one.name in wanted), key=_topic), key=_topic):
        found = subscriptions(tx, (namespace, name, subject), "", MOST + 1)
        first = found[:MOST]
        for one in group:
            if pairs and len(pairs) + len(first) > MOST_TOGETHER:
                left.append((one.id, ""))
                continue
            event = Emitted(one.id, namespace, name, subject, one.payload, tx.now)
            pairs += [(event, subscription) for subscription in first]
            if len(found) > len(first):
                left.append((one.id, first[-1].subscriber))
    open_events(tx, left)
    return pairs


def _names(new: Iterable[Emission]) -> list[tuple[str]]:
    return [(name,) for name in sorted({one.name for one in new})]


_topic = attrgetter("name", "subject")


# --- Keys -----------------------------------------------------------------------------------------


def _resolve(tx: Tx, header: EmitHeader, emissions: Sequence[Emission]) -> tuple[list[Accepted], list[Emission]]:
    """For each emission an answer, which names the event that has its key or else itself; and the new emissions."""
    keyed: dict[str, list[Emission]] = {}
    for one in emissions:
        if one.key is not None:
            keyed.setdefault(one.name, []).append(one)
    if not keyed:
        return [Accepted(one.id, True) for one in emissions], list(emissions)
    _lock(tx, header.namespace, keyed)
    holders = {name: _holders(tx, header, name, of) for name, of in keyed.items()}
    answers: list[Accepted] = []
    new: list[Emission] = []
    taken: dict[str, list[tuple[str, str, str]]] = {}
    for one in emissions:
        known = None if one.key is None else holders[one.name].get(one.key)
        if known is None:
            new.append(one)
            if one.key is not None:
                holders[one.name][one.key] = (one.id, one.digest)
                taken.setdefault(one.name, []).append((one.key, one.id, one.digest))
        elif known[1] != one.digest:
            raise KeyConflict(
                f"the key {one.key!r} belongs to event {known[0]} ({one.name}), which has another payload. Use another "
                "key, or the same payload."
            )
        answers.append(Accepted(known[0], known[0] == one.id) if known else Accepted(one.id, True))
    for name, rows in taken.items():
        tx.run("take_keys", rows=sorted(rows), kind=header.key_kind, namespace=header.namespace, app="", job=name)
    return answers, new


def _lock(tx: Tx, namespace: str, keyed: dict[str, list[Emission]]) -> None:
    """Locks keys like `keys.lock`: one lock for each key, or with too many keys one exclusive lock for the name."""
    names = {name: f"{namespace} {KIND} {name}" for name in keyed}
    locks = [(names[name], len(of) <= MOST_LOCKS) for name, of in keyed.items()]
    locks += [(f"{names[name]} {one.key}", False) for name, of in keyed.items() if len(of) <= MOST_LOCKS for one in of]
    is_ours, _ = tx.one("lock_keys", keys=locks, waits=tx.waits) or (0, "")
    if not is_ours:
        raise NotNow(
            f"another open transaction holds a key of this call (event {', '.join(sorted(keyed))}): `rota doctor` "
            "lists transactions that have been open for long"
        )


def _holders(tx: Tx, header: EmitHeader, name: str, of: Sequence[Emission]) -> dict[str, tuple[str, str]]:
    """By key, if it is taken: the event that has it, and the hash of that event's payload."""
    keys = [one.key for one in of]
    rows = tx.rows("key_holders", keys=keys, kind=header.key_kind, namespace=header.namespace, app="", job=name)
    return {key: (holder, digest) for key, holder, digest, _ in rows}
