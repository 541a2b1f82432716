"""Case 3: a crash between any two statements of an emit or a delivery leaves nothing, and the next try does all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.ops.events import deliver, emit
from tests.events.scene import Scene, subscriber
from tests.support.tables import table
from tests.workflow.test_crashes import Crash, Shaky

MOST_STATEMENTS = 200
TABLES = (
    *("event", "event_open", "delivery", "subscription", "execution", "ready", "waiting", "scheduled", "finished"),
    *("run", "step", "unique_key", "blocker"),
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emit looks at two subscriptions, and upkeep at three."""
    monkeypatch.setattr(emit, "MOST", 2)
    monkeypatch.setattr(deliver, "CHUNK", 3)


def state(scene: Scene) -> dict[str, int]:
    return {name: len(table(scene.store, name)) for name in TABLES}


def done_at_last(scene: Scene, shaky: Shaky, call: Callable[[], object]) -> int:
    """Crashes before each statement in turn. After each, nothing has changed. Returns how many crashes there were."""
    before = state(scene)
    for statement in range(1, MOST_STATEMENTS):
        shaky.left = statement
        try:
            call()
        except Crash:
            assert state(scene) == before, f"a crash before statement {statement} left something"
        else:
            shaky.left = None
            return statement - 1
    raise AssertionError("it did not end")


@pytest.mark.usefixtures("small")
def test_crashes_of_an_emit_and_of_its_delivery(scene: Scene) -> None:
    scene.deploy(
        *(subscriber(f"job{number}", "paid") for number in range(4)),
        subscriber("quiet", "paid", debounce_s=10.0),
        subscriber("other", "paid", where={"n": 2}),
    )
    for name in ("job0", "job1", "job2", "job3", "quiet"):
        scene.bodies[name] = lambda x: x
    event = {"names": ["paid"], "timeout": "1h"}
    scene.workflow("main", {"id": "w", "event": event}, {"id": "b", "job": "echo", "after": ["w"]}, result=1)
    runs = [scene.start("main") for _ in range(3)]
    scene.work()
    shaky = Shaky(scene.store)
    scene.store = scene.world.store = shaky  # type: ignore[assignment]
    emission = scene.emission("paid", {"n": 1}, key="k")
    assert done_at_last(scene, shaky, lambda: scene.accept(emission)) > 5
    crashes = 0
    while table(scene.store, "event_open"):
        crashes += done_at_last(scene, shaky, lambda: scene.store.transact(emit_chunk))
    assert crashes > 10
    scene.work()
    assert scene.started_by(emission.id) == ["event()", "event()", "event()", "job0", "job1", "job2", "job3", "quiet"]
    assert [scene.result(id) for id in runs] == [1, 1, 1]


@pytest.mark.usefixtures("small")
def test_crashes_of_a_wait_that_begins(scene: Scene) -> None:
    scene.workflow("main", {"id": "w", "event": {"names": ["paid"], "timeout": "1h"}}, result={"$": "w.payload"})
    id = scene.start("main")
    scene.worker  # noqa: B018 -- It joins.
    shaky = Shaky(scene.store)
    scene.store = scene.world.store = shaky  # type: ignore[assignment]
    assert done_at_last(scene, shaky, scene.open) > 5
    scene.settle()
    scene.emit("paid", 1)
    assert scene.result(id) == 1
    scene.check()


def emit_chunk(tx: object) -> None:
    deliver.deliver_open(tx)  # type: ignore[arg-type]
