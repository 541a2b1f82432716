"""Emitting events: keys, the insert, and the first look for subscribers, in one transaction."""

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
"""The kind of the keys of events in `unique_key`; the name of the event stands in place of the job."""
MOST = 100
"""How many subscriptions the transaction of an emit looks at for each event."""
MOST_TOGETHER = 1000
"""How many for all its events, if these are several."""


class Emission(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event to emit. `digest` is the hash of the payload, which an event with a key needs."""

    id: str
    name: str
    payload: str
    subject: str = ""
    key: str | None = None
    digest: str = ""
    replay_of: str | None = None


class Source(msgspec.Struct, frozen=True):
    """Where events come from.

    `is_later`: upkeep delivers them after the commit. A transaction of the caller may be open for long, and must not
    hold the rows of executions and runs; its snapshot may be old.
    """

    namespace: str
    actor: str
    is_later: bool = False
    kind: str = KIND
    """The kind of their keys."""


@operation(is_large=True, together=lambda tx, calls: _emit_together(tx, calls))
def emit(tx: Tx, source: Source, emissions: Sequence[Emission]) -> list[Accepted]:
    """Emits every event or none. An event whose key is known is not emitted again."""
    answers, pairs = _accept(tx, source, emissions)
    deliver(tx, pairs, is_new=True)
    return answers


def open_events(tx: Tx, rows: Sequence[tuple[str, str]], *, is_replay: bool = False) -> None:
    """Leaves events to upkeep, each from the subscriber on that follows the given one."""
    if rows:
        tx.run("open_events", rows=rows, is_replay=int(is_replay))
        tx.tell(Due(tx.now))


def _emit_together(tx: Tx, calls: Sequence[tuple[Any, ...]]) -> list[list[Accepted]]:
    """The calls of many callers: those with the same source are one."""
    answers: list[list[Accepted]] = [[] for _ in calls]
    pairs: list[Pair] = []
    sources: dict[Source, list[int]] = {}
    for index, (source, _) in enumerate(calls):
        sources.setdefault(source, []).append(index)
    for source, indices in sources.items():
        accepted, more = _accept(tx, source, [one for index in indices for one in calls[index][1]])
        pairs += more
        left = iter(accepted)
        for index in indices:
            answers[index] = list(islice(left, len(calls[index][1])))
    deliver(tx, pairs, is_new=True)
    return answers


def _accept(tx: Tx, source: Source, emissions: Sequence[Emission]) -> tuple[list[Accepted], list[Pair]]:
    """Inserts the events that are new. Returns the answers, and what is to be delivered in this transaction."""
    check_ids(tx.now, [one.id for one in emissions])
    answers, new = _resolve(tx, source, emissions)
    if not new:
        return answers, []
    rows = [(one.id, one.name, one.subject, one.key, one.payload, one.replay_of) for one in new]
    tx.run("add_events", rows=rows, namespace=source.namespace, actor=source.actor)
    if source.is_later:
        open_events(tx, [(one.id, "") for one in new])
        return answers, []
    return answers, _look(tx, source.namespace, new)


def _look(tx: Tx, namespace: str, new: Sequence[Emission]) -> list[Pair]:
    """The first subscriptions of each event. The others are left to upkeep."""
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


def _resolve(tx: Tx, source: Source, emissions: Sequence[Emission]) -> tuple[list[Accepted], list[Emission]]:
    """For each emission the event that answers for it, and the emissions that are new."""
    keyed: dict[str, list[Emission]] = {}
    for one in emissions:
        if one.key is not None:
            keyed.setdefault(one.name, []).append(one)
    if not keyed:
        return [Accepted(one.id, True) for one in emissions], list(emissions)
    _lock(tx, source.namespace, keyed)
    holders = {name: _holders(tx, source, name, of) for name, of in keyed.items()}
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
        tx.run("take_keys", rows=sorted(rows), kind=source.kind, namespace=source.namespace, app="", job=name)
    return answers, new


def _lock(tx: Tx, namespace: str, keyed: dict[str, list[Emission]]) -> None:
    """As `keys.lock` does for executions: with too many keys the lock of the name is exclusive instead."""
    names = {name: f"{namespace} {KIND} {name}" for name in keyed}
    locks = [(names[name], len(of) <= MOST_LOCKS) for name, of in keyed.items()]
    locks += [(f"{names[name]} {one.key}", False) for name, of in keyed.items() if len(of) <= MOST_LOCKS for one in of]
    is_ours, _ = tx.one("lock_keys", keys=locks, waits=tx.waits) or (0, "")
    if not is_ours:
        raise NotNow(
            f"an open transaction holds a key that this call has, too (event {', '.join(sorted(keyed))}): "
            "`rota doctor` names transactions that are open for long"
        )


def _holders(tx: Tx, source: Source, name: str, of: Sequence[Emission]) -> dict[str, tuple[str, str]]:
    """Those of the keys that are taken: the event, and the hash of its payload."""
    keys = [one.key for one in of]
    rows = tx.rows("key_holders", keys=keys, kind=source.kind, namespace=source.namespace, app="", job=name)
    return {key: (holder, digest) for key, holder, digest, _ in rows}
