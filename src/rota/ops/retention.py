"""Pruning: what was kept long enough goes, in small transactions, and leaves its statistics behind.

A pass belongs to the node that began it, and a row in `chore` says so. Every step is a whole transaction that looks at
a bounded number of rows, so that a node may be killed at any moment: another one takes over where it stopped.
"""

from __future__ import annotations

import msgspec

from rota.domain import retention
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.retention import AUDIT_S, FOREVER, Pass, Record, Retention
from rota.ids import FIRST_ID, LAST_ID, first_at
from rota.ops.audit import audit
from rota.store.port import Tx, View

CHORE = "retention"
MOST = 1000
MOST_LINES = 10_000
KEPT_KIND = "unique:forever"
"""A key that somebody wanted to be unique for ever outlives the execution that took it."""
SHORTEST_S = 3600
AFFINITY_S = retention.DAY_S
LEDGER_S = 400 * retention.DAY_S
MOST_SCHEDULES = 200


class Sweep(msgspec.Struct, frozen=True):
    """A range of executions to look through. `strays` are in no day's partition; `marks` says that the mark moves."""

    after: str
    bound: str
    cutoffs: list[tuple[str, int]]
    strays: bool = False
    marks: bool = False


class Step(msgspec.Struct, frozen=True):
    """How far one transaction came, and what it removed. `after` is None at the end of the sweep."""

    after: str | None
    removed: int


class _Old(msgspec.Struct, frozen=True, array_like=True):
    id: str
    deadline: int | None
    fence: int
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
    """Another node has taken the pass over, because nothing was heard of this one."""


def policy(view: View, default_s: int) -> Retention:
    return Retention(default_s, dict(view.rows("retentions")))


def set_retention(tx: Tx, namespace: str, kept_s: int | None, actor: str) -> None:
    """How long a namespace keeps its history: seconds, FOREVER, or None for what the setting says."""
    known: dict[str, int | None] = dict(tx.rows("retentions"))
    if namespace not in known:
        raise DefinitionError(f"there is no namespace {namespace!r}; `rota namespaces` lists them")
    if kept_s is not None and kept_s != FOREVER and kept_s < SHORTEST_S:
        raise DefinitionError(f"history must be kept for an hour at least, not {kept_s} s: results are read from it")
    tx.run("set_retention", namespace=namespace, retention_s=kept_s)
    audit(tx, namespace, actor, "namespace.retention", namespace, before=known[namespace], after=kept_s)


def is_due(view: View) -> bool:
    """A cheap look that says whether `begin` is worth a transaction."""
    found = view.records("chore", Record, name=CHORE)
    return retention.next_pass(found[0] if found else Record(), view.now) is not None


def begin(tx: Tx) -> Pass | None:
    """The pass that this node is to make now, if any."""
    tx.run("add_chore", name=CHORE)
    found = tx.records("lock_chore", Record, name=CHORE)
    due = retention.next_pass(found[0], tx.now) if found else None
    if due is not None:
        values = msgspec.structs.asdict(due)
        tx.run("begin_chore", name=CHORE, **values)
    return due


def end(tx: Tx, begun_at: int) -> int:
    """The pass is done. Returns how many executions it removed, those of a node that was killed on the way included."""
    tx.run("end_chore", name=CHORE, begun_at=begun_at)
    found = tx.records("chore", Record, name=CHORE)
    return found[0].removed if found else 0


def beat(tx: Tx, begun_at: int, removed: int, mark: str | None = None) -> None:
    """Says that the pass goes on; raises if it is no longer ours."""
    if not tx.run("beat_chore", name=CHORE, begun_at=begun_at, removed=removed, mark=mark):
        raise Overtaken("another node does it")


def sweep_all(kept: Retention, mark: str, now: int) -> Sweep | None:
    """Everything that may go, row by row. None if nothing may."""
    return None if kept.shortest_s is None else _sweep(kept.cutoffs(now), mark, now - kept.shortest_s * MICROSECONDS)


def sweep_hasty(kept: Retention, mark: str, now: int) -> Sweep | None:
    """Only what cannot wait until its whole day goes."""
    cutoffs = kept.hasty_cutoffs(now)
    return _sweep(cutoffs, mark, max(cutoff for _, cutoff in cutoffs)) if cutoffs else None


def sweep_strays(kept: Retention, now: int) -> Sweep:
    return Sweep(FIRST_ID, LAST_ID, kept.cutoffs(now), strays=True)


def sweep_day(kept: Retention, day: int, now: int) -> Sweep:
    return Sweep(first_at(day), first_at(day + retention.DAY), kept.cutoffs(now))


def _sweep(cutoffs: list[tuple[str, int]], mark: str, until: int) -> Sweep:
    return Sweep(mark or FIRST_ID, first_at(until), cutoffs, marks=True)


def prune(tx: Tx, begun_at: int, sweep: Sweep, after: str, most: int) -> Step:
    """Looks at up to `most` executions and removes those that may go, their statistics kept, in one transaction."""
    page = "strays_page" if sweep.strays else "history_page"
    rows = tx.records(page, _Old, after=after, bound=sweep.bound, cutoffs=sweep.cutoffs, most=most)
    going = [row for row in rows if row.goes]
    going = going[: retention.affordable((row.fence for row in going), MOST)]
    logged = _affordable(tx, going)
    if going and (shortened := _shortened(tx, going[0], logged)):
        # So many attempts or lines do not go in one piece. The execution itself goes when they are gone.
        beat(tx, begun_at, 0)
        return Step(_before(rows, going[0], after), shortened)
    going = going[:logged]
    removed = _remove(tx, going) if going else 0
    reached = _reached(rows, going, after, most)
    beat(tx, begun_at, removed, (reached or sweep.bound) if sweep.marks else None)
    return Step(reached, removed)


def _affordable(tx: Tx, going: list[_Old]) -> int:
    """How many from the front have at most MOST_LINES lines of log together; perhaps none."""
    if not going:
        return 0
    bounds = {"ids": [row.id for row in going], "lowest": going[0].id, "highest": going[-1].id}
    together = 0
    for id, count in tx.rows("lines_in_history", **bounds, most=MOST_LINES + 1):
        together += count
        if together > MOST_LINES:
            return next(index for index, row in enumerate(going) if row.id == id)
    return len(going)


def _shortened(tx: Tx, row: _Old, logged: int) -> int:
    """Removes a part of what the first execution has too much of; returns how much, nothing if it can go whole."""
    if row.fence > MOST and (shortened := tx.run("shorten_history", id=row.id, most=MOST)):
        return shortened
    return 0 if logged else tx.run("shorten_log", id=row.id, most=MOST_LINES)


def _before(rows: list[_Old], row: _Old, after: str) -> str:
    index = rows.index(row)
    return rows[index - 1].id if index else after


def _reached(rows: list[_Old], going: list[_Old], after: str, most: int) -> str | None:
    """The last id that was dealt with; None if there is nothing behind it."""
    left = [row for row in rows if row.goes and row.id > (going[-1].id if going else after)]
    if left:
        return going[-1].id
    return rows[-1].id if len(rows) == most else None


def _remove(tx: Tx, going: list[_Old]) -> int:
    lowest, highest = going[0].id, going[-1].id
    ids = [row[0] for row in tx.rows("lock_history", ids=[row.id for row in going], lowest=lowest, highest=highest)]
    if not ids:
        return 0
    bounds = {"ids": ids, "lowest": lowest, "highest": highest}
    tx.run("roll_up", **bounds)
    tx.run("settle_ticks", **bounds)
    tx.run("drop_history", **bounds)
    reminders = [(row.deadline, row.id) for row in going if row.deadline is not None]
    if reminders:
        tx.run("forget_expiries", rows=reminders)
    return len(ids)


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
        most=most,
    )
    going = [(row.namespace, row.app, row.job, row.kind, row.key, row.holder) for row in rows if row.goes]
    if going:
        tx.run("drop_keys", rows=going)
    beat(tx, begun_at, 0)
    return (rows[-1].taken_at, rows[-1].holder) if len(rows) == most else None


def old_workers(view: View, kept: Retention) -> list[int]:
    """Workers that stopped so long ago that nothing which is kept names them."""
    if kept.longest_s is None:
        return []
    bound = view.now - kept.longest_s * MICROSECONDS - retention.GRACE
    return [row[0] for row in view.rows("old_workers", bound=bound, most=MOST)]


def prune_workers(tx: Tx, begun_at: int, ids: list[int]) -> int:
    beat(tx, begun_at, 0)
    return tx.run("drop_workers", ids=ids, bound=tx.now)


def prune_deploys(tx: Tx, begun_at: int, kept: Retention) -> int:
    """Removes old deploys that are not in force and that no worker's row names; returns how many."""
    beat(tx, begun_at, 0)
    if kept.longest_s is None:
        return 0
    return tx.run("drop_deploys", bound=tx.now - kept.longest_s * MICROSECONDS - retention.GRACE)


def prune_affinity(tx: Tx, begun_at: int) -> int:
    """Forgets which workers ran what has not come again for long; returns how many, none at the end."""
    beat(tx, begun_at, 0)
    return tx.run("drop_affinity", bound=tx.now - AFFINITY_S * MICROSECONDS, most=MOST)


def prune_ticks(tx: Tx, begun_at: int, kept: Retention, after: int) -> int | None:
    """Removes what is old of the ledger of some schedules, and those that are long gone. Returns how far it came."""
    if kept.longest_s is None:
        return None
    bound = tx.now - max(LEDGER_S, kept.longest_s) * MICROSECONDS
    rows = tx.rows("old_ticks", after=after, schedules=MOST_SCHEDULES, bound=bound, most=MOST)
    going = [(id, at) for id, _, at in rows if at is not None]
    if going:
        tx.run("drop_ticks", rows=going)
    gone = sorted({id for id, removed_at, _ in rows if removed_at is not None and removed_at < bound})
    if gone:
        tx.run("drop_schedules", ids=gone, bound=bound)
    beat(tx, begun_at, 0)
    if not rows:
        return None
    # The last of a full page may have more.
    return int(rows[-1][0]) - (len(rows) == MOST)


def prune_audit(tx: Tx, begun_at: int, kept: Retention) -> int:
    """Removes the oldest of the audit trail; returns how many rows, none at the end."""
    if kept.longest_s is None:
        return 0
    bound = tx.now - max(AUDIT_S, kept.longest_s) * MICROSECONDS
    ids = [id for id, at in tx.rows("audit_page", most=MOST) if at < bound]
    if ids:
        tx.run("drop_audit", ids=ids)
    beat(tx, begun_at, 0)
    return len(ids)
