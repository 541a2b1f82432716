"""All operations at once on PostgreSQL: in any order, an execution is in one state table, and ends once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest

from rota.domain.claim import Claim
from rota.domain.job import Definition
from rota.domain.outcome import Failed, GivenBack, Outcome, Snoozed, Succeeded
from rota.domain.retry import Fixed
from rota.domain.served import Served
from rota.domain.status import Reason
from rota.domain.unique import OnConflict, Unique
from rota.ops import claim, control, enqueue, finish, fleet, job_pauses, upkeep
from rota.ops.finish import Finished
from rota.store.port import Tx
from tests.store.arena import Arena
from tests.support.proving import sampled
from tests.support.world import APP, ERROR, NAMESPACE, World

ACTORS, STEPS = 6, 150
JOBS = ("send", "receive")
RETRY = Fixed(attempts=3, delay=0.02)
OUTCOMES: list[Outcome] = [
    Succeeded("1"),
    Failed(ERROR),
    Failed(ERROR, permanent=True),
    Snoozed(0.02),
    GivenBack(Reason.DRAINED),
    GivenBack(Reason.NOT_BEGUN, 0.02),
]
CONFLICTS = [OnConflict.REPLACE, OnConflict.DEBOUNCE, OnConflict.RETURN]


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena


class Hesitant:
    """A transaction that sometimes waits a moment before a statement, so that others come in between."""

    def __init__(self, tx: Tx, chance: random.Random) -> None:
        self._tx = tx
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        if name in ("run", "rows", "records", "one") and self._chance.random() < 0.2:
            time.sleep(self._chance.random() * 0.01)  # sleep: lets other threads run
        return getattr(self._tx, name)


class Actor:
    """A client with a worker of its own that runs random operations."""

    def __init__(self, arena: Arena, ids: list[str], seed: int) -> None:
        self._clock = arena.clock
        self._store = arena.store()
        self._world = World(arena.store(), arena.clock)
        self._world.register(*(Definition(name=job, retry=RETRY.describe()) for job in JOBS))
        self._ids = ids
        self._chance = random.Random(seed)
        self._held: list[Claim] = []
        self._join()

    def act(self) -> None:
        deeds: list[Callable[[], None]] = [
            *[self._enqueue] * 4,
            *[self._claim] * 5,
            *[self._finish] * 5,
            *[self._cancel] * 4,
            *[self._pause] * 2,
            *[self._resume] * 3,
            *[partial(self._do, upkeep.promote), partial(self._do, upkeep.expire)] * 2,
            *[partial(self._clock.advance, 0.02)] * 3,
            self._go,
        ]
        for _ in range(STEPS):
            self._chance.choice(deeds)()

    def _do(self, op: Callable[..., Any], *args: Any) -> Any:
        return self._store.transact(lambda tx: op(Hesitant(tx, self._chance), *args))

    def _enqueue(self) -> None:
        options: dict[str, Any] = self._chance.choice(
            [
                {},
                {"delay_s": 0.02},
                {"start_within_s": 0.05},
                {"unique": Unique(key=str(self._chance.randrange(3)), on_conflict=self._chance.choice(CONFLICTS))},
            ]
        )
        header = self._world.header(self._chance.choice(JOBS), **options)
        items = [self._world.item() for _ in range(1 if "unique" in options else self._chance.randrange(1, 8))]
        self._ids += [one.id for one in self._do(enqueue.enqueue, header, items)]

    def _claim(self) -> None:
        self._held += self._do(
            claim.claim, self._worker, Served.one(NAMESPACE, APP, None, ["send", "receive", "count"]), 4
        ).claims

    def _finish(self) -> None:
        reports = [Finished(one.id, one.fence, self._chance.choice(OUTCOMES)) for one in self._held]
        self._held.clear()
        self._do(finish.finish, reports)

    def _cancel(self) -> None:
        if self._ids:
            self._do(control.cancel, NAMESPACE, self._chance.choice(self._ids[-40:]), "test")

    def _pause(self) -> None:
        self._do(job_pauses.pause, NAMESPACE, APP, self._chance.choice(JOBS), "test")

    def _resume(self) -> None:
        self._do(job_pauses.resume, NAMESPACE, APP, self._chance.choice(JOBS), "test")

    def _go(self) -> None:
        """Orderly or not; the outcomes of its executions come too late."""
        if self._chance.random() < 0.5:
            self._do(fleet.leave, self._worker)
        else:
            self._do(fleet.declare_dead, self._worker, "test")
        self._join()

    def _join(self) -> None:
        self._worker = self._world.join(lease_s=600)


@pytest.mark.parametrize("seed", sampled(range(3), 1))
def test_an_execution_is_in_one_state_table_and_ends_once(arena: Arena, seed: int) -> None:
    ids: list[str] = []
    actors = [Actor(arena, ids, seed * ACTORS + number) for number in range(ACTORS)]
    arena.all_at_once([actor.act for actor in actors])
    with psycopg.connect(arena.url) as connection:
        query = """
            SELECT x.id, p.places, f.ends, f.last, f.final FROM rota.execution x
            CROSS JOIN LATERAL (SELECT count(*) FROM (
                SELECT id FROM rota.scheduled UNION ALL SELECT id FROM rota.waiting
                UNION ALL SELECT id FROM rota.ready UNION ALL SELECT id FROM rota.running) t
                WHERE t.id = x.id) p(places)
            CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE final = 1), max(fence), max(fence) FILTER (WHERE final = 1)
                FROM rota.finished t WHERE t.id = x.id) f(ends, last, final)
            WHERE p.places + f.ends <> 1 OR f.final < f.last"""
        assert connection.execute(query.encode()).fetchall() == []
        assert len(ids) > ACTORS * 10
