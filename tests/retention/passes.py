"""A whole pass by rows, as on a database without partitions."""

from __future__ import annotations

from rota.domain.claim import Claim
from rota.domain.outcome import Outcome, Succeeded
from rota.domain.retention import Pass, Retention
from rota.domain.status import TERMINAL
from rota.ids import FIRST_ID
from rota.ops import fleet, retention
from rota.store.port import Store
from tests.support.statistics import counted
from tests.support.world import NAMESPACE, NO_RETRY, World

DAY_S = 86_400


def begin(store: Store) -> Pass:
    begun = store.transact(retention.begin)
    assert begun is not None
    return begun


def policy(store: Store, days: float = 30) -> Retention:
    return store.read(retention.policy, round(days * DAY_S))


def prune(store: Store, days: float = 30, batch: int = 7) -> int:
    """Deletes everything past its retention, in one pass; returns how many executions were deleted."""
    begun = begin(store)
    kept = policy(store, days)
    removed = 0
    sweep = retention.sweep_all(kept, begun.mark, begun.begun_at)
    if sweep is not None:
        removed = sweep_through(store, begun, sweep, batch)
        after: tuple[int, str] | None = (0, FIRST_ID)
        while after is not None:
            after = store.transact(retention.prune_keys, begun.begun_at, kept, after, batch)
        for statement in retention.OTHERS:
            while store.transact(retention.prune_others, begun.begun_at, kept, statement):
                pass
        while store.transact(retention.prune_statistics, begun.begun_at):
            pass
    store.transact(retention.end, begun.begun_at)
    return removed


def sweep_through(store: Store, begun: Pass, sweep: retention.Sweep, batch: int = 7) -> int:
    after: str | None = sweep.after
    removed = 0
    while after is not None:
        step = store.transact(retention.prune, begun.begun_at, sweep, after, batch)
        after, removed = step.after, removed + step.removed
    return removed


def finish_all(world: World, outcome: Outcome = Succeeded("1"), after_s: float = 2.0) -> list[Claim]:  # noqa: B008
    """Everything that is queued ends so, having run so long."""
    worker = world.join()
    claims = world.claim(worker, 10_000)
    world.clock.advance(after_s)
    for attempt in claims:
        world.finish(attempt, outcome, NO_RETRY)
    world.store.transact(fleet.leave, worker)
    return claims


def ended(store: Store, namespace: str = NAMESPACE) -> dict[tuple[str, str], int]:
    """The statistics by job and status: how many executions have ended, whether or not they have been deleted."""
    found = counted(store, namespace).items()
    return {(job, metric): count for (_, job, metric), count in sorted(found) if metric in TERMINAL}
