"""The loop that looks after the history, on every store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from rota.clock import ManualClock
from rota.domain.errors import StoreUnavailable
from rota.engine.janitor import LOOK_S, Janitor
from rota.ops import retention
from rota.store.partitions import Keeper, open_keeper
from rota.store.port import Store
from rota.store.postgres.store import PostgresStore
from rota.store.sqlite.store import SqliteStore
from tests.retention.passes import DAY_S, begin, ended, finish_all
from tests.support.databases import fresh_database
from tests.support.world import World

Opened = tuple[Store, Keeper | None]


class Fickle:
    """A store of which `fail_in` makes the operation after so many fail."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.fail_in = -1

    def transact(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.fail_in -= 1
        if self.fail_in == 0:
            raise StoreUnavailable("away")
        return self._store.transact(op, *args, **kwargs)

    def read(self, query: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._store.read(query, *args, **kwargs)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def on_sqlite(folder: Path, clock: ManualClock) -> Opened:
    return SqliteStore(f"sqlite:///{folder}/rota.db", clock, inline=True), None


def on_postgres(folder: Path, clock: ManualClock) -> Opened:
    url = fresh_database()
    return PostgresStore(url, clock, inline=True), open_keeper(url, clock)


@pytest.fixture(params=[on_sqlite, on_postgres])
def opened(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Opened]:
    store, keeper = request.param(tmp_path, clock)
    yield store, keeper
    store.close()


@pytest.fixture
def world(opened: Opened, clock: ManualClock) -> World:
    return World(opened[0], clock)


@pytest.fixture
def fickle(opened: Opened) -> Fickle:
    return Fickle(opened[0])


@pytest.fixture
def janitor(opened: Opened, fickle: Fickle, clock: ManualClock) -> Iterator[Janitor]:
    janitor = Janitor(cast("Store", fickle), clock, opened[1], 30)
    yield janitor
    janitor.close()


async def a_round(janitor: Janitor) -> float:
    """Until it rests; returns for how long."""
    while (delay := await janitor.step()) < 1:
        pass
    return delay


async def test_a_janitor_makes_its_first_pass_a_while_after_the_start(janitor: Janitor) -> None:
    assert 30 <= await janitor.step() <= 90


async def test_history_is_pruned_after_its_retention(
    world: World, janitor: Janitor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rota.engine")
    await a_round(janitor)
    for _ in range(40):
        world.enqueue_many(3)
        finish_all(world)
        world.clock.advance(DAY_S)
        assert await a_round(janitor) >= 0.9 * LOOK_S
    left = len(world.executions(limit=1000))
    assert 87 <= left <= 96
    assert ended(world.store) == {("send", "success"): 120}, "the statistics know also what was deleted"
    assert any("pruned" in record.message for record in caplog.records)
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def test_namespaces_with_a_shorter_retention_strays_keys_and_workers_are_pruned(
    world: World, janitor: Janitor
) -> None:
    await a_round(janitor)
    world.register("send", namespace="short")
    world.store.transact(retention.set_retention, "short", 5 * DAY_S, "test")
    world.enqueue(namespace="short", key="k")
    worker = world.join(namespace="short")
    world.finish(world.claim(worker, namespace="short")[0])
    world.clock.advance(
        20 * DAY_S
    )  # No partitions were created meanwhile: on PostgreSQL the next executions go to the default partition.
    kept = world.enqueue_many(2)
    finish_all(world)
    await a_round(janitor)
    assert world.accept(namespace="short", key="k").created
    assert sorted(world.executions()) == kept
    world.clock.advance(33 * DAY_S)
    await a_round(janitor)
    assert world.executions() == []


async def test_only_one_janitor_prunes_at_a_time(world: World, fickle: Fickle, janitor: Janitor) -> None:
    await a_round(janitor)
    world.enqueue_many(3)
    finish_all(world)
    world.clock.advance(40 * DAY_S)
    begun = begin(world.store)
    await a_round(janitor)
    assert len(world.executions()) == 3
    world.store.transact(retention.end, begun.begun_at)
    world.clock.advance(3600)
    await a_round(janitor)
    assert world.executions() == []


async def test_a_failed_pass_is_resumed(world: World, fickle: Fickle, janitor: Janitor) -> None:
    await a_round(janitor)
    dead = world.fail()
    world.enqueue_many(500)
    finish_all(world)
    world.clock.advance(40 * DAY_S)
    fickle.fail_in = 3
    await a_round(janitor)
    fickle.fail_in = -1
    await a_round(janitor)
    world.clock.advance(600)
    await a_round(janitor)
    assert world.executions(limit=1000) == dead
    assert ended(world.store) == {("send", "failed"): 1, ("send", "success"): 500}


async def test_an_unexpected_error_does_not_end_the_loop(
    world: World, janitor: Janitor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await a_round(janitor)
    monkeypatch.setattr(retention, "policy", lambda *_: 1 / 0)
    assert await a_round(janitor) >= 0.9 * LOOK_S
    assert "retention failed" in caplog.text
