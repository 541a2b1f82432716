"""Statistics: counted where executions are created and end, folded and sampled by upkeep.

The transaction that creates or ends executions appends to `stat_delta`: one row for each lane and outcome, which no
other transaction changes. `fold` deletes some of these rows and adds them to `stat` in one transaction, so a supervisor
that is killed has folded each row or has not. A read adds the rows that are not folded yet (`views/statistics.py`).
Deleting history changes nothing here.

The report of a worker has all values that are counted, so no row is read for them. Its lane is compared with that of
the running row (`ops/finish.py`). All other ends (cancels, skips, runs, dead workers) are looked up by the statement
that counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rota.domain import requirement, statistics
from rota.domain.instant import MICROSECONDS
from rota.domain.statistics import FIVE_MINUTES_S, HOUR_S, MINUTE_S, STEPS_S, Count, Delta, Key, Tally
from rota.domain.status import Status
from rota.ops.end_record import End, Times
from rota.store.port import Tx, View

MOST_DELTAS = 500
MOST_QUEUED = 1_000_000
"""Ready executions are counted up to this number in each lane."""
FOLD, SAMPLE = "fold", "sample"


class Due(msgspec.Struct, frozen=True, array_like=True):
    has_deltas: bool
    is_sample_due: bool


class _Row(msgspec.Struct, frozen=True, array_like=True):
    lane: int
    step_s: int
    at: int
    created: int
    success: int
    failed: int
    cancelled: int
    skipped: int
    retries: int
    run_times: str
    start_latencies: str
    latenesses: str


class Sample(msgspec.Struct, array_like=True):
    """A sample of one queue, of one pool, or of a whole namespace, whose queue and pool are both empty."""

    namespace: str
    queue: str
    pool: str
    queued: int = 0
    oldest_age: int = 0
    busy: int = 0
    slots: int = 0


# --- Counting ------------------------------------------------------------------------------------


def count_created(tx: Tx, created: Mapping[int, int]) -> None:
    """How many executions were created in each lane."""
    tx.run("count_created", rows=list(created.items()))


def count_ends(tx: Tx, ends: Sequence[End]) -> None:
    """Counts ended executions. An end with `is_repeated` is left out: the transaction that ended the execution has
    counted it."""
    known: dict[tuple[int, Status], list[Times]] = {}
    others: dict[str, list[str]] = {}
    lane, status, group = 0, None, list[Times]()
    for end in ends:
        times = end.times
        if times is None or not times.lane:
            if not end.is_repeated:
                others.setdefault(end.status.value, []).append(end.id)
            continue
        # Consecutive ends are mostly alike, and the hash of an enum is slow.
        if times.lane != lane or end.status is not status:
            lane, status = times.lane, end.status
            group = known.setdefault((lane, status), [])
        group.append(times)
    if known:
        rows = [(lane, len(group), status.value, *_written(tx.now, group)) for (lane, status), group in known.items()]
        tx.run("add_deltas", rows=rows)
    for outcome, ids in others.items():
        _count(tx, ids, outcome)


def _written(now: int, group: Sequence[Times]) -> tuple[str, str, str | None]:
    """The histograms of some reports."""
    late = [one.late for one in group if one.late is not None]
    return (
        statistics.written(statistics.histogram([now - one.started_at for one in group])),
        statistics.written(statistics.histogram([one.waited for one in group])),
        statistics.written(statistics.histogram(late)) if late else None,
    )


def count_retries(tx: Tx, ids: Iterable[str]) -> None:
    """Executions that have failed and will run again."""
    _count(tx, list(ids), Count.RETRIES.value)


def _count(tx: Tx, ids: list[str], outcome: str) -> None:
    tx.run("count_ends", ids=ids, outcome=outcome, lowest=min(ids), highest=max(ids))


# --- Folding -------------------------------------------------------------------------------------


def due(view: View) -> Due:
    """A cheap read that says whether there is anything to fold or to sample."""
    found = view.one("stat_chore_due")
    assert found is not None, "a statement without FROM has one row"
    return Due(bool(found[0]), bool(found[1]))


def fold(tx: Tx, most: int = MOST_DELTAS) -> int:
    """Adds some deltas to the rows of their times. Returns how many; 0 if another supervisor does it."""
    if not tx.rows("lock_stat_chore", name=FOLD):
        return 0
    deltas = [Delta(*row) for row in tx.records("take_deltas", tuple, most=most)]
    tallies = statistics.fold(deltas)
    if tallies:
        for row in tx.records("stats_at", _Row, keys=sorted(tallies)):
            _add(tallies[row.lane, row.step_s, row.at], row)
        tx.run("put_stats", rows=[_columns(key, tally) for key, tally in sorted(tallies.items())])
    return len(deltas)


def _add(tally: Tally, row: _Row) -> None:
    for outcome in Count:
        tally.add(outcome, getattr(row, outcome))
    for number, text in enumerate((row.run_times, row.start_latencies, row.latenesses)):
        tally.add_times(number, statistics.read(text))


def _columns(key: Key, tally: Tally) -> tuple[object, ...]:
    return *key, *tally.counts, *map(statistics.written, tally.times)


# --- Sampling ------------------------------------------------------------------------------------


def observe(view: View) -> list[Sample]:
    """The state of every queue, pool and namespace. A read: nothing is locked while the queues are counted."""
    found: dict[tuple[str, str, str], Sample] = {}

    def at(namespace: str, queue: str = "", pool: str = "") -> Sample:
        return found.setdefault((namespace, queue, pool), Sample(namespace, queue, pool))

    queues: dict[str, list[str]] = {}
    for namespace, name in view.rows("queue_names"):
        queues.setdefault(namespace, []).append(name)
        at(namespace), at(namespace, name)
    busy: dict[int, int] = dict(view.rows("busy_in_lanes"))
    pools: dict[str, set[str]] = {}
    for lane, namespace, queue, needs, queued, oldest_at in view.rows("queued_in_lanes", most=MOST_QUEUED):
        age = 0 if oldest_at is None else max(0, view.now - oldest_at)
        pool = requirement.decode(needs).pool
        pools.setdefault(namespace, set()).add(pool)
        for one in (at(namespace), at(namespace, queue), at(namespace, pool=pool)):
            one.queued += queued
            one.busy += busy.get(lane, 0)
            one.oldest_age = max(one.oldest_age, age)
    for namespace, served, offers, slots in view.rows("slots_of_workers"):
        names = msgspec.json.decode(served, type=list[str] | None)
        at(namespace).slots += slots
        for queue in queues.get(namespace, []) if names is None else names:
            at(namespace, queue).slots += slots
        given = requirement.decode_offers(offers)
        for pool in pools.get(namespace, set()) if given.everything else given.pools:
            at(namespace, pool=pool).slots += slots
    return list(found.values())


def write_samples(tx: Tx, samples: Sequence[Sample]) -> bool:
    """Writes the samples of this minute, unless another supervisor has."""
    if not tx.rows("lock_stat_chore", name=SAMPLE):
        return False
    begins = [(step_s, statistics.begin_of(tx.now, step_s)) for step_s in STEPS_S]
    rows = [
        (one.namespace, one.queue, one.pool, *begin, one.queued, one.oldest_age, one.busy, one.slots)
        for one in samples
        for begin in begins
    ]
    if rows:
        tx.run("put_samples", rows=rows)
    minute = MINUTE_S * MICROSECONDS
    tx.run("set_stat_chore", name=SAMPLE, next_at=statistics.begin_of(tx.now, MINUTE_S) + minute)
    return True


# --- Removing ------------------------------------------------------------------------------------

_MINUTES_KEPT_S = statistics.MINUTES_KEPT_S + HOUR_S
KEPT_S = {MINUTE_S: _MINUTES_KEPT_S, FIVE_MINUTES_S: _MINUTES_KEPT_S, HOUR_S: statistics.HOURS_KEPT_S}
"""Minutes an hour longer than they are shown, so that a window of 48 hours is whole."""


def drop_old(tx: Tx, most: int) -> int:
    """Deletes some rows that were kept long enough; returns how many."""
    removed = 0
    for step_s, kept_s in KEPT_S.items():
        where = {"step_s": step_s, "bound": tx.now - kept_s * MICROSECONDS, "most": most}
        removed += tx.changed("drop_stats", **where) + tx.changed("drop_samples", **where)
    return removed
