"""Pruning: history that was kept long enough is removed in small transactions. The statistics do not depend on it.

One supervisor at a time makes a pass, and the row in `retention_pass` identifies it by the time at which it began.
Each step is one transaction over a bounded number of executions. If the supervisor is killed, another one resumes the
pass where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rota.domain import retention
from rota.domain.errors import Conflict, DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.retention import AUDIT_S, DAY_S, FOREVER, Pass, Record, Retention
from rota.ids import FIRST_ID, LAST_ID, first_at
from rota.ops import statistics
from rota.ops.audit import audit
from rota.ops.keys import REQUEST
from rota.store.port import Tx, View

PASS_NAME = "retention"
MOST = 1000
KEPT_KIND = "unique:forever"
"""Keys of this kind outlive the execution that took them."""
SHORTEST_S = 3600
AFFINITY_S = DAY_S
REQUEST_KEYS_S = 2 * DAY_S
LEDGER_S = 400 * DAY_S
MOST_SCHEDULES = 200


class Sweep(msgspec.Struct, frozen=True):
    """A range of executions to look through. `strays` are in no day's partition; `marks` says that the mark moves."""

    after: str
    bound: str
    cutoffs: list[tuple[str, int]]
    strays: bool = False
    marks: bool = False


class Step(msgspec.Struct, frozen=True):
    """How far one transaction came, and how many executions it removed. `after` is None at the end of the sweep."""

    after: str | None
    removed: int


class _Old(msgspec.Struct, frozen=True, array_like=True):
    id: str
    deadline: int | None
    goes: int


class _Key(msgspec.Struct, frozen=True, array_like=True):
    taken_at: int
    holder: str
    namespace: str
    app: str
    job: str
    kind: str
    key: str
    goes: int


class Overtaken(Exception):
    """Another supervisor has taken over the pass, because this one sent no heartbeat for too long."""


def policy(view: View, default_s: int) -> Retention:
    return Retention(default_s, dict(view.rows("retentions")))


def remove_namespace(tx: Tx, namespace: str, actor: str) -> bool:
    """Removes a namespace that has nothing in it; False if there is none."""
    found = tx.one("namespace_content", namespace=namespace)
    if found is None:
        return False
    if found[1]:
        raise Conflict(f"namespace {namespace} is not empty: it has {found[1]}")
    tx.run("remove_namespace", namespace=namespace)
    audit(tx, namespace, actor, "namespace.remove", namespace)
    return True


def set_retention(tx: Tx, namespace: str, kept_s: int | None, actor: str) -> None:
    """How long a namespace keeps its history: seconds, FOREVER, or None for what the setting says."""
    known: dict[str, int | None] = dict(tx.rows("retentions"))
    if namespace not in known:
        raise DefinitionError(f"there is no namespace {namespace!r}; `rota namespaces` lists them")
    if kept_s is not None and kept_s != FOREVER and kept_s < SHORTEST_S:
        raise DefinitionError(f"history must be kept for an hour at least, not {kept_s} s: results are read from it")
    tx.run("set_retention", namespace=namespace, retention_s=kept_s)
    audit(tx, namespace, actor, "namespace.retention", namespace, before=known[namespace], after=kept_s)


# --- A pass --------------------------------------------------------------------------------------


def begin(tx: Tx) -> Pass | None:
    """Begins a pass, or takes over an abandoned one; None if none is due, or another supervisor is making it."""
    tx.run("add_retention_pass", name=PASS_NAME)
    found = tx.records("lock_retention_pass", Record, name=PASS_NAME)
    due = retention.next_pass(found[0], tx.now) if found else None
    if due is not None:
        tx.run("begin_retention_pass", name=PASS_NAME, **msgspec.structs.asdict(due))
    return due


def end(tx: Tx, begun_at: int) -> int:
    """The pass is done. Returns how many executions it removed, also by supervisors that were killed during it."""
    tx.run("end_retention_pass", name=PASS_NAME, begun_at=begun_at)
    found = tx.records("retention_pass", Record, name=PASS_NAME)
    return found[0].removed if found else 0


def beat(tx: Tx, begun_at: int, removed: int = 0, mark: str | None = None) -> None:
    """The heartbeat of a pass. Raises `Overtaken` if another supervisor has taken over the pass."""
    if not tx.changed("beat_retention_pass", name=PASS_NAME, begun_at=begun_at, removed=removed, mark=mark):
        raise Overtaken("another supervisor has taken over this retention pass")


# --- Executions ----------------------------------------------------------------------------------


def sweep_all(kept: Retention, mark: str, now: int) -> Sweep | None:
    """All executions that may be removed; None if there are none."""
    return None if kept.shortest_s is None else _sweep(kept.cutoffs(now), mark, now - kept.shortest_s * MICROSECONDS)


def sweep_hasty(kept: Retention, mark: str, now: int) -> Sweep | None:
    """Only the executions that must be removed before their whole day is dropped."""
    cutoffs = kept.hasty_cutoffs(now)
    return _sweep(cutoffs, mark, max(cutoff for _, cutoff in cutoffs)) if cutoffs else None


def sweep_strays(kept: Retention, now: int) -> Sweep:
    return Sweep(FIRST_ID, LAST_ID, kept.cutoffs(now), strays=True)


def sweep_day(kept: Retention, day: int, now: int) -> Sweep:
    return Sweep(first_at(day), first_at(day + retention.DAY), kept.cutoffs(now))


def _sweep(cutoffs: list[tuple[str, int]], mark: str, until: int) -> Sweep:
    return Sweep(mark or FIRST_ID, first_at(until), cutoffs, marks=True)


def prune(tx: Tx, begun_at: int, sweep: Sweep, after: str, most: int) -> Step:
    """Looks at up to `most` executions and removes those that were kept long enough, with their attempts and logs."""
    page = "strays_page" if sweep.strays else "history_page"
    rows = tx.records(page, _Old, after=after, bound=sweep.bound, cutoffs=sweep.cutoffs, most=most)
    going = [row for row in rows if row.goes]
    removed = _remove(tx, going) if going else 0
    reached = rows[-1].id if len(rows) == most else None
    beat(tx, begun_at, removed, (reached or sweep.bound) if sweep.marks else None)
    return Step(reached, removed)


def _remove(tx: Tx, going: list[_Old]) -> int:
    lowest, highest = going[0].id, going[-1].id
    ids = [row[0] for row in tx.rows("lock_history", ids=[row.id for row in going], lowest=lowest, highest=highest)]
    if not ids:
        return 0
    for statement in ("settle_ticks", "drop_history"):
        tx.run(statement, ids=ids, lowest=lowest, highest=highest)
    reminders = [(row.deadline, row.id) for row in going if row.deadline is not None]
    if reminders:
        tx.run("forget_expiries", rows=reminders)
    return len(ids)


def sweep_events(kept: Retention, now: int) -> Sweep | None:
    """The sweep over all old events; None if every namespace keeps its history forever."""
    return None if kept.shortest_s is None else _events(kept.cutoffs(now))


def sweep_hasty_events(kept: Retention, now: int) -> Sweep | None:
    """The sweep over events of namespaces whose retention is shorter than that of others; None if there are none.

    The others are removed when the partition of their day is dropped.
    """
    cutoffs = kept.hasty_cutoffs(now)
    return _events(cutoffs) if cutoffs else None


def _events(cutoffs: list[tuple[str, int]]) -> Sweep:
    return Sweep(FIRST_ID, first_at(max(cutoff for _, cutoff in cutoffs)), cutoffs)


def prune_events(tx: Tx, begun_at: int, sweep: Sweep, after: str, most: int) -> str | None:
    """Reads up to `most` events, and removes those that are older than their retention, with their deliveries.

    Returns the last id that was read; None at the end.
    """
    page = "stray_events_page" if sweep.strays else "events_page"
    rows = tx.rows(page, after=after, bound=sweep.bound, cutoffs=sweep.cutoffs, most=most)
    if going := [id for id, goes in rows if goes]:
        tx.run("drop_events", ids=going, lowest=going[0], highest=going[-1])
    beat(tx, begun_at)
    return str(rows[-1][0]) if len(rows) == most else None


# --- What is kept as long as the history, or longer ----------------------------------------------


def prune_keys(tx: Tx, begun_at: int, kept: Retention, after: tuple[int, str], most: int) -> tuple[int, str] | None:
    """Removes keys whose holder's history is gone. Returns how far it came; None at the end."""
    if kept.shortest_s is None:
        return None
    rows = tx.records(
        "keys_page",
        _Key,
        taken_at=after[0],
        holder=after[1],
        bound=tx.now - kept.shortest_s * MICROSECONDS,
        cutoffs=kept.cutoffs(tx.now),
        kept=KEPT_KIND,
        request=REQUEST,
        requests_until=tx.now - REQUEST_KEYS_S * MICROSECONDS,
        most=most,
    )
    going = [(row.namespace, row.app, row.job, row.kind, row.key, row.holder) for row in rows if row.goes]
    if going:
        tx.run("drop_keys", rows=going)
    beat(tx, begun_at)
    return (rows[-1].taken_at, rows[-1].holder) if len(rows) == most else None


def prune_ticks(tx: Tx, begun_at: int, kept: Retention, after: int) -> int | None:
    """Removes old ticks from the ledger of some schedules, and schedules that were removed long ago.

    Returns how far it came; None at the end.
    """
    kept_s = _longest(kept, LEDGER_S)
    if kept_s is None:
        return None
    bound = tx.now - kept_s * MICROSECONDS
    rows = tx.rows("old_ticks", after=after, schedules=MOST_SCHEDULES, bound=bound, most=MOST)
    going = [(id, at) for id, _, at in rows if at is not None]
    if going:
        tx.run("drop_ticks", rows=going)
    gone = sorted({id for id, removed_at, _ in rows if removed_at is not None and removed_at < bound})
    if gone:
        tx.run("drop_schedules", ids=gone, bound=bound)
    beat(tx, begun_at)
    if not rows:
        return None
    # The last schedule of a full page may have more old ticks.
    return int(rows[-1][0]) - (len(rows) == MOST)


def prune_others(tx: Tx, begun_at: int, kept: Retention, statement: str) -> int:
    """Removes up to `MOST` old rows with one of the statements of `OTHERS`. Returns how many; 0 at the end."""
    beat(tx, begun_at)
    kept_s = OTHERS[statement](kept)
    return 0 if kept_s is None else tx.changed(statement, bound=tx.now - kept_s * MICROSECONDS, most=MOST)


def prune_statistics(tx: Tx, begun_at: int) -> int:
    """Removes some old rows of the statistics. Returns how many; 0 at the end."""
    beat(tx, begun_at)
    return statistics.drop_old(tx, MOST)


def _longest(kept: Retention, least_s: int = 0) -> int | None:
    """The longest retention with its grace, and at least `least_s`; None if some history is kept forever."""
    return None if kept.longest_s is None else max(least_s, kept.longest_s + retention.GRACE // MICROSECONDS)


OTHERS: dict[str, Callable[[Retention], int | None]] = {
    "drop_workers": _longest,
    "drop_deploys": _longest,
    "drop_affinity": lambda _: AFFINITY_S,
    "drop_audit": lambda kept: _longest(kept, AUDIT_S),
    "drop_request_keys": lambda _: REQUEST_KEYS_S,
    "drop_actions": _longest,
}
"""How many seconds to keep the rows that each statement removes; None means forever."""
