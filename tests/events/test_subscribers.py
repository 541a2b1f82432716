"""Jobs and workflows that events start: which events, with what arguments, and how often."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.domain.errors import ClockSkew, KeyConflict, UnknownEvent
from rota.domain.job import Definition
from rota.domain.status import Status
from rota.domain.subscription import Subscribes
from rota.ops.events import emit as emitting
from rota.ops.events import replay
from rota.ops.events.emit import EmitHeader
from rota.store import event_reader
from tests.events.scene import ONE, Scene, subscriber
from tests.support.tables import table
from tests.support.world import NAMESPACE
from tests.workflow.stage import workflow


def test_an_event_starts_each_job_that_subscribes_to_its_name(scene: Scene) -> None:
    scene.deploy(
        subscriber("bill", "order.paid"), subscriber("pack", "order.paid", "order.changed"), subscriber("x", "x")
    )
    paid, changed = scene.emit("order.paid", {"id": 1}), scene.emit("order.changed", 2)
    nothing = scene.emit("order.lost")
    assert scene.started_by(paid) == ["bill", "pack"]
    assert scene.started_by(changed) == ["pack"]
    assert scene.started_by(nothing) == []
    assert scene.arguments("bill") == [{"x": {"id": 1}}]
    assert scene.arguments("pack") == [{"x": {"id": 1}}, {"x": 2}]


def test_an_execution_knows_the_event_that_started_it(scene: Scene) -> None:
    scene.deploy(subscriber("bill", "order.paid", queue="slow", priority=7, start_within_s=60.0))
    id = scene.emit("order.paid", 5, subject="A-1")
    (attempt,) = scene.world.claim(scene.world.join(), jobs=["bill"])
    found = msgspec.json.decode(attempt.event or "{}")
    assert (found["id"], found["name"], found["subject"]) == (id, "order.paid", "A-1")
    row = scene.world.execution(attempt.id)
    assert (row.actor, row.queue, row.priority) == ("event", "slow", 7)
    assert row.deadline == scene.world.clock.now() + 60_000_000


@pytest.mark.parametrize(
    ("parameters", "value", "arguments"),
    [
        ({}, {"a": 1}, {}),
        (ONE, [1, 2], {"x": [1, 2]}),
        (ONE, None, {"x": None}),
        ({"a": {"type": "int"}, "b": {"type": "int"}}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2}),
        ({"a": {"type": "int"}, "b": {"type": "int"}}, 5, {}),
        ({"a": {"type": "int"}, "rest": {"type": "any", "others": True}}, {"a": 1, "c": 3}, {"a": 1, "c": 3}),
    ],
)
def test_how_a_payload_becomes_arguments(scene: Scene, parameters: Any, value: Any, arguments: Any) -> None:
    scene.deploy(Definition(name="bill", on=Subscribes(["paid"]), parameters=parameters))
    scene.emit("paid", value)
    assert scene.arguments("bill") == [arguments]


def test_a_workflow_can_subscribe(scene: Scene) -> None:
    definition = workflow("fulfil", [{"id": "a", "job": "echo", "with": {"x": {"$": "input.x"}}}], result={"$": "a"})
    scene.deploy(
        msgspec.structs.replace(definition, on=Subscribes(["order.paid"]), parameters=ONE),
        Definition(name="echo", parameters=ONE),
    )
    id = scene.emit("order.paid", {"id": 5})
    scene.work()
    (run,) = scene.event(id).started
    assert scene.result(run.execution_id) == {"id": 5}
    scene.check()


def test_where_chooses_by_the_payload(scene: Scene) -> None:
    scene.deploy(subscriber("large", "paid", where={"order.total": {"ge": 100}}), subscriber("all", "paid"))
    small, large, odd = (scene.emit("paid", {"order": {"total": total}}) for total in (99, 100, "many"))
    assert [scene.started_by(id) for id in (small, large, odd)] == [["all"], ["all", "large"], ["all"]]


# --- Deploys --------------------------------------------------------------------------------------


def test_a_subscriber_counts_from_its_deploy_until_its_declaration_is_gone(scene: Scene) -> None:
    before = scene.emit("paid")
    scene.deploy(subscriber("bill", "paid"))
    during = scene.emit("paid")
    scene.deploy(subscriber("bill", "paid", where={"a": 1}), subscriber("pack", "paid"))
    changed = scene.emit("paid", {"a": 2})
    scene.deploy(Definition(name="bill"))
    after = scene.emit("paid")
    assert [scene.started_by(id) for id in (before, during, changed, after)] == [[], ["bill"], ["pack"], []]


def test_apps_do_not_touch_each_others_subscriptions(scene: Scene) -> None:
    scene.deploy(subscriber("bill", "paid"))
    scene.deploy(subscriber("bill", "paid"), app="other")
    assert scene.started_by(scene.emit("paid")) == ["bill", "bill"]
    scene.deploy(Definition(name="bill"), app="other")
    assert scene.started_by(scene.emit("paid")) == ["bill"]


def test_a_process_that_only_enqueues_subscribes_nothing(scene: Scene) -> None:
    scene.world.register(subscriber("bill", "paid"))
    assert scene.started_by(scene.emit("paid")) == []


# --- Keys -----------------------------------------------------------------------------------------


def test_the_same_key_is_the_same_event(scene: Scene) -> None:
    scene.deploy(subscriber("bill", "paid"))
    first = scene.accept(scene.emission("paid", {"a": 1, "b": 2}, key="k"))[0]
    again = scene.accept(scene.emission("paid", {"b": 2, "a": 1}, key="k"))[0]
    other = scene.accept(scene.emission("refunded", 5, key="k"))[0]
    assert (first.created, again.created, again.id == first.id, other.created) == (True, False, True, True)
    assert len(scene.executions("bill")) == 1
    with pytest.raises(KeyConflict, match="another payload"):
        scene.emit("paid", {"a": 2}, key="k")
    assert len(table(scene.store, "event")) == 2


def test_the_same_key_twice_in_one_call(scene: Scene) -> None:
    one, two, free = scene.accept(
        scene.emission("paid", 1, key="k"), scene.emission("paid", 1, key="k"), scene.emission("paid", 1)
    )
    assert (one.created, two.created, two.id == one.id, free.created) == (True, False, True, True)
    with pytest.raises(KeyConflict):
        scene.accept(scene.emission("paid", 1, key="n"), scene.emission("paid", 2, key="n"))
    assert len(table(scene.store, "event")) == 2


def test_an_id_of_another_day_is_refused(scene: Scene) -> None:
    late = scene.emission("paid")
    scene.world.clock.advance(25 * 3600)
    with pytest.raises(ClockSkew):
        scene.accept(late)


# --- Debounce -------------------------------------------------------------------------------------


def test_debounce_starts_once_when_it_was_quiet(scene: Scene) -> None:
    scene.deploy(subscriber("index", "changed", debounce_s=10.0))
    scene.job("index", lambda x: x)
    first, second = scene.emit("changed", 1, "a"), scene.emit("changed", 2, "b")
    scene.world.clock.advance(9)
    third = scene.emit("changed", 3, "a")
    ids = [scene.event(id).started[0].execution_id for id in (first, second, third)]
    assert ids[0] == ids[2] != ids[1]
    scene.advance(9)
    assert [scene.world.status(id) for id in ids] == [Status.SCHEDULED, Status.SUCCESS, Status.SCHEDULED]
    scene.advance(1)
    assert scene.result(ids[0]) == 1
    later = scene.emit("changed", 4, "a")
    assert scene.event(later).started[0].execution_id not in ids


def test_debounce_within_one_call(scene: Scene) -> None:
    scene.deploy(subscriber("index", "changed", debounce_s=10.0))
    scene.accept(*(scene.emission("changed", number) for number in range(5)))
    assert len(scene.executions("index")) == 1
    assert len(table(scene.store, "delivery")) == 5


# --- Many -----------------------------------------------------------------------------------------


def test_more_than_a_hundred_subscribers_are_left_to_upkeep(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.ops.events.deliver.CHUNK", 40)
    scene.deploy(*(subscriber(f"job{number:03}", "paid") for number in range(250)))
    id = scene.emit("paid", 1)
    assert (scene.event(id).deliveries, scene.event(id).is_delivered) == (100, False)
    scene.settle()
    assert (scene.event(id).deliveries, scene.event(id).is_delivered) == (250, True)
    assert scene.started_by(id) == [f"job{number:03}" for number in range(250)]


def test_many_events_at_once_are_bounded_too(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitting, "MOST_TOGETHER", 5)
    scene.deploy(subscriber("bill", "paid"), subscriber("pack", "paid"))
    ids = [one.id for one in scene.accept(*(scene.emission("paid", number) for number in range(6)))]
    assert len(table(scene.store, "event_open")) == 4
    scene.settle()
    assert [scene.started_by(id) for id in ids] == [["bill", "pack"]] * 6


def test_calls_that_share_a_transaction(scene: Scene) -> None:
    scene.deploy(subscriber("bill", "paid"))
    calls = [
        (EmitHeader(NAMESPACE, "a"), [scene.emission("paid", 1), scene.emission("paid", 2)]),
        (EmitHeader("elsewhere", "a"), [scene.emission("paid", 3)]),
        (EmitHeader(NAMESPACE, "a"), [scene.emission("paid", 4, key="k")]),
    ]
    answers = scene.store.transact(emitting._emit_together, calls)
    assert [[one.id for one in of] for of in answers] == [[one.id for one in of] for _, of in calls]
    assert sorted(one["x"] for one in scene.arguments("bill")) == [1, 2, 4]


# --- Replay ---------------------------------------------------------------------------------------


def test_a_replay_is_for_jobs_that_have_not_had_the_event(scene: Scene) -> None:
    scene.deploy(subscriber("bill", "paid"))
    id = scene.emit("paid", 1)
    assert scene.replay(id) == 0
    scene.deploy(subscriber("bill", "paid"), subscriber("pack", "paid"))
    assert scene.replay(id) == 1
    assert scene.replay(id) == 0
    assert scene.started_by(id) == ["bill", "pack"]
    assert len(scene.executions("bill")) == 1


def test_an_event_starts_its_jobs_although_the_clock_was_set_back(scene: Scene) -> None:
    scene.deploy(subscriber("bill", "order.paid"))
    scene.world.clock.advance(-10)
    assert scene.started_by(scene.emit("order.paid")) == ["bill"]


@pytest.mark.parametrize("id", ["nonsense", "", "00000000-0000-7000-8000-000000000000"])
def test_an_id_that_no_event_has_is_refused(scene: Scene, id: str) -> None:
    assert scene.store.read(event_reader.event, NAMESPACE, id) is None
    with pytest.raises(UnknownEvent):
        scene.replay(id)
    with pytest.raises(UnknownEvent):
        scene.store.transact(replay.repeat, NAMESPACE, id, scene.world.ids.new(), "test")


def test_a_forced_replay_is_a_new_event_for_all(scene: Scene) -> None:
    scene.deploy(subscriber("bill", "paid"))
    id = scene.emit("paid", {"a": 1}, "subject", key="k")
    new = scene.store.transact(replay.repeat, NAMESPACE, id, scene.world.ids.new(), "test")
    assert (scene.event(new).replay_of, scene.event(new).payload) == (id, {"a": 1})
    assert (scene.started_by(id), scene.started_by(new)) == (["bill"], ["bill"])
