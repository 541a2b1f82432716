"""Events are kept as long as other history, and then go with their deliveries and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from rota.clock import ManualClock
from rota.engine.janitor import Janitor
from rota.ops import retention
from rota.ops.events.emit import emit
from rota.ops.retention import KEPT_KIND
from tests.events.scene import HEADER, Scene, subscriber
from tests.retention.passes import DAY_S
from tests.retention.test_janitor import Opened, on_postgres, on_sqlite
from tests.support.tables import table
from tests.support.world import NAMESPACE, World


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=[on_sqlite, on_postgres])
def opened(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Opened]:
    store, keeper = request.param(tmp_path, clock)
    yield store, keeper
    store.close()


@pytest.fixture
def scene(opened: Opened, clock: ManualClock) -> Scene:
    return Scene(World(opened[0], clock))


def tidy(opened: Opened, clock: ManualClock, days: int) -> None:
    """One whole round of the janitor."""
    janitor = Janitor(opened[0], clock, opened[1], days)

    async def work() -> None:
        await janitor.step()
        while await janitor.step() < 1:
            pass

    asyncio.run(work())
    janitor.close()


def emitted(scene: Scene) -> list[str]:
    return sorted(row["name"] for row in table(scene.store, "event"))


def test_old_events_go_with_their_deliveries_and_keys(opened: Opened, scene: Scene, clock: ManualClock) -> None:
    scene.deploy(subscriber("bill", "old", "new"))
    scene.emit("old", 1, key="k")
    clock.advance(8 * DAY_S)
    scene.emit("new", 1, key="k")
    tidy(opened, clock, 10)
    assert emitted(scene) == ["new", "old"]
    clock.advance(4 * DAY_S)
    tidy(opened, clock, 10)
    assert emitted(scene) == ["new"]
    assert len(table(scene.store, "delivery")) == 1
    assert [row["job"] for row in table(scene.store, "unique_key") if row["kind"] == "event"] == ["new"]


def test_a_namespace_may_keep_its_events_for_less_time(opened: Opened, scene: Scene, clock: ManualClock) -> None:
    scene.store.transact(retention.set_retention, NAMESPACE, 3600, "test")
    scene.world.register("x", namespace="patient")
    scene.emit("mine")
    scene.store.transact(_emit_elsewhere, scene)
    clock.advance(2 * 3600)
    scene.emit("new")
    tidy(opened, clock, 10)
    assert emitted(scene) == ["new", "theirs"]


def test_the_key_of_a_file_outlives_its_event(opened: Opened, scene: Scene, clock: ManualClock) -> None:
    """A file may lie in its folder for longer than history is kept."""

    files = replace(HEADER, key_kind=KEPT_KIND)
    first = scene.emission("file", 1, key="k")
    scene.store.transact(emit, files, [first])
    clock.advance(20 * DAY_S)
    tidy(opened, clock, 10)
    assert emitted(scene) == []
    (again,) = scene.store.transact(emit, files, [scene.emission("file", 1, key="k")])
    assert (again.id, again.created) == (first.id, False)


def _emit_elsewhere(tx: object, scene: Scene) -> None:

    emit(tx, replace(HEADER, namespace="patient"), [scene.emission("theirs")])  # type: ignore[arg-type]
