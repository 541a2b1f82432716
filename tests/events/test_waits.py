"""Steps that wait for an event: early and late events, filters, several names, timeouts."""

from __future__ import annotations

from typing import Any

import pytest

from rota.ops import upkeep
from rota.ops.events.chores import work_on_events
from tests.events.scene import Scene
from tests.support.proving import proof
from tests.support.tables import table

HOUR = 3600


def ref(path: str) -> dict[str, str]:
    return {"$": path}


def waiting(scene: Scene, *, name: str = "main", **event: Any) -> str:
    """An open run whose only step waits for an event."""
    event = {"names": ["paid"], "timeout": "1h", **event}
    scene.workflow(name, {"id": "w", "event": event}, result=ref("w"))
    id = scene.start(name)
    scene.work()
    return id


def test_an_event_wakes_a_step_that_waits(scene: Scene) -> None:
    id = waiting(scene, subject="A-1")
    assert scene.letters(id) == "o"
    scene.emit("paid", 1, "A-2")
    scene.emit("refunded", 2, "A-1")
    scene.settle()
    assert scene.letters(id) == "o"
    event = scene.emit("paid", {"total": 5}, "A-1")
    found = scene.result(id)
    assert (found["id"], found["name"], found["subject"], found["payload"]) == (event, "paid", "A-1", {"total": 5})
    assert scene.event(event).started[0].run_id == id
    scene.check()


def test_a_step_gets_one_event(scene: Scene) -> None:
    id = waiting(scene)
    one, _ = scene.accept(scene.emission("paid", 1), scene.emission("paid", 2))
    assert scene.result(id)["id"] == one.id
    assert len(table(scene.store, "delivery")) == 1
    scene.check()


def test_one_event_wakes_many(scene: Scene) -> None:
    scene.workflow("main", {"id": "w", "event": {"names": ["paid"], "timeout": "1h"}}, result=ref("w.payload"))
    ids = [scene.start("main") for _ in range(5)]
    scene.work()
    scene.emit("paid", 7)
    assert [scene.result(id) for id in ids] == [7] * 5
    scene.check()


@pytest.mark.parametrize("count", [250, proof(10_000)])
def test_case_21_one_event_and_many_waits(scene: Scene, count: int) -> None:
    event = {"names": ["paid"], "timeout": "1h"}
    scene.workflow("main", {"id": "m", "workflow": "each", "map": list(range(count)), "as": "x"}, result=ref("m"))
    scene.workflow("each", {"id": "w", "event": event}, result=ref("w.payload"))
    id = scene.start("main")
    scene.work()
    paid = scene.emit("paid", 1)
    scene.work()
    assert scene.result(id) == [1] * count
    assert len(table(scene.store, "delivery")) == count
    assert scene.event(paid).is_delivered
    scene.check()


@pytest.mark.parametrize("subject", ["", "A\n1", "x" * 257], ids=["empty", "two-lines", "long"])
def test_a_subject_that_no_event_can_have_fails_the_step(scene: Scene, subject: str) -> None:
    event = {"names": ["paid"], "subject": ref("a"), "timeout": "1h"}
    scene.workflow("main", {"id": "a", "job": "echo", "with": {"x": subject}}, {"id": "w", "event": event})
    id = scene.start("main")
    scene.work()
    assert scene.end(id) == ("failed", "step_failed")
    assert "an event's subject must be 1 to 256 printable characters" in scene.error(id)
    scene.check()


def test_an_object_in_a_filter_that_is_a_value_has_no_operators(scene: Scene) -> None:
    event = {"names": ["paid"], "where": {"order": ref("a")}, "timeout": "1h"}
    scene.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": {"exists": True}}},
        {"id": "w", "event": event},
        result=ref("w.payload.n"),
    )
    id = scene.start("main")
    scene.work()
    scene.emit("paid", {"order": "another", "n": 1})
    scene.emit("paid", {"order": {"exists": True}, "n": 2})
    assert scene.result(id) == 2
    scene.check()


def test_several_names_and_a_filter(scene: Scene) -> None:
    id = waiting(scene, names=["paid", "declined"], where={"total": {"gt": 10}})
    scene.emit("paid", {"total": 10})
    scene.emit("refunded", {"total": 11})
    assert scene.letters(id) == "o"
    scene.emit("declined", {"total": 11})
    assert scene.result(id)["name"] == "declined"
    scene.check()


# --- Looking back ---------------------------------------------------------------------------------


def test_an_event_since_the_run_opened_counts(scene: Scene) -> None:
    """The earliest one that matches, also if the step comes later."""
    scene.workflow(
        "main",
        {"id": "a", "job": "echo"},
        {"id": "w", "event": {"names": ["paid"], "where": {"n": {"ge": 2}}, "timeout": "1h"}, "after": ["a"]},
        result=ref("w.payload.n"),
    )
    scene.emit("paid", {"n": 9})
    scene.world.clock.advance(1)
    id = scene.start("main")
    scene.open()
    for number in (1, 2, 3):
        scene.emit("paid", {"n": number})
        scene.world.clock.advance(1)
    scene.work()
    assert scene.result(id) == 2
    assert len(table(scene.store, "delivery")) == 1
    scene.check()


def test_many_events_are_read_in_pages(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.ops.events.waits.PAGE", 3)
    scene.accept(*(scene.emission("paid", {"n": number}, "A") for number in range(11)))
    id = waiting(scene, where={"n": 10}, lookback="1m", subject="A")
    assert scene.result(id)["payload"] == {"n": 10}


@pytest.mark.parametrize(("lookback", "found"), [("10m", True), ("4m", False)])
def test_lookback(scene: Scene, lookback: str, found: bool) -> None:
    scene.emit("paid", 1)
    scene.world.clock.advance(300)
    id = waiting(scene, lookback=lookback)
    assert (scene.world.ending(id) is not None) is found


def test_a_wait_does_not_take_what_a_wait_upstream_took(scene: Scene) -> None:
    event = {"names": ["paid"], "timeout": "1h"}
    scene.workflow(
        "main",
        {"id": "a", "event": event},
        {"id": "b", "event": event, "after": ["a"]},
        {"id": "c", "event": event},
        result=[ref("a.payload"), ref("b.payload"), ref("c.payload")],
    )
    id = scene.start("main")
    scene.work()
    scene.emit("paid", 1)
    scene.work()
    assert scene.letters(id) == "sos"
    scene.emit("paid", 2)
    assert scene.result(id) == [1, 2, 1]
    scene.check()


def test_a_chunk_does_not_give_an_event_to_a_wait_that_follows_the_one_that_took_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second wait begins in the transaction that delivers the event to the first, behind the cursor."""
    monkeypatch.setattr("rota.ops.events.deliver.CHUNK", 1)
    event = {"names": ["paid"], "timeout": "1h"}
    scene.workflow("main", {"id": "a", "event": event}, {"id": "b", "event": event, "after": ["a"]}, result=ref("b"))
    id = scene.start("main")
    scene.work()
    scene.world.clock.advance(1)
    scene.accept(scene.emission("paid", 1), delivers_later=True)
    scene.work()
    assert scene.letters(id) == "so"
    scene.emit("paid", 2)
    assert scene.result(id)["payload"] == 2


def test_a_run_that_opens_while_an_event_is_delivered_does_not_get_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.ops.events.deliver.CHUNK", 1)
    early = waiting(scene)
    scene.accept(scene.emission("paid", 1), delivers_later=True)
    assert scene.store.transact(work_on_events)
    scene.world.clock.advance(1)
    late = scene.start("main")
    scene.work()
    assert scene.result(early)["payload"] == 1
    assert scene.letters(late) == "o"


# --- Ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_timeout", "end"), [("fail", ("failed", "step_failed")), ("skip", ("success", "completed"))]
)
def test_a_wait_times_out(scene: Scene, on_timeout: str, end: tuple[str, str]) -> None:
    scene.workflow("main", {"id": "w", "event": {"names": ["paid"], "timeout": "1h", "on_timeout": on_timeout}})
    id = scene.start("main")
    scene.work()
    scene.advance(HOUR + 1)
    assert scene.end(id)[0] == end[0]
    assert scene.started_by(scene.emit("paid")) == []
    scene.check()


@pytest.mark.parametrize("first", ["event", "timeout"])
def test_case_22_the_event_and_the_timeout_at_the_same_instant(scene: Scene, first: str) -> None:
    id = waiting(scene, timeout="1h")
    scene.world.clock.advance(HOUR)
    if first == "timeout":
        scene.store.transact(upkeep.expire)
    event = scene.emit("paid", 1)
    scene.work()
    assert scene.end(id)[0] == ("success" if first == "event" else "failed")
    assert len(scene.event(event).started) == (first == "event")
    scene.check()


def test_a_cancelled_run_waits_no_longer(scene: Scene) -> None:
    id = waiting(scene)
    scene.cancel(id)
    scene.work()
    assert scene.end(id) == ("cancelled", "cancelled")
    assert scene.started_by(scene.emit("paid")) == []
    scene.check()


def test_case_24_an_event_for_a_paused_run_is_recorded(scene: Scene) -> None:
    scene.workflow(
        "main",
        {"id": "w", "event": {"names": ["paid"], "timeout": "1h"}},
        {"id": "b", "job": "echo", "with": {"x": ref("w.payload")}},
        result=ref("b"),
    )
    id = scene.start("main")
    scene.work()
    scene.pause(id)
    scene.emit("paid", 5)
    scene.work()
    assert (scene.letters(id)[0], scene.count("echo")) == ("s", 0)
    scene.resume(id)
    scene.work()
    assert scene.result(id) == 5
    scene.check()


def test_an_event_that_is_emitted_later_wakes_too(scene: Scene) -> None:
    id = waiting(scene)
    scene.accept(scene.emission("paid", 1), delivers_later=True)
    assert scene.letters(id) == "o"
    scene.work()
    assert scene.result(id)["payload"] == 1
    scene.check()
