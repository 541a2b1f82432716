"""Placing: the rows of a new execution are the same for every caller and every statement."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import msgspec
import pytest

from rota.domain.blocker import Kind
from rota.domain.instant import MICROSECONDS
from rota.domain.job import Definition
from rota.domain.rank import HEAD_START
from rota.domain.status import Status
from rota.ids import is_id
from rota.ops import blockers, control, define
from rota.ops.place import Batch, Origin, find_route, place
from rota.store.hints import Due, Ready
from rota.store.statements import PLACED
from tests.support.tables import table
from tests.support.world import APP, ERROR, FAILED, NAMESPACE, RecordingBus, World

HEADERS = '{"tenant":"ann"}'
UPSTREAM = '{"extract":"0196a3f0-1111-7000-8000-0123456789ab"}'
OVERRIDES = '{"timeout_s":5.0}'


def batch(world: World, count: int = 1, **changes: Any) -> Batch:
    origin: dict[str, Any] = {
        "actor": "test",
        "key": "k",
        "parent": world.ids.new(),
        "replay_of": world.ids.new(),
        "tags": '["a"]',
        "trace": "00-a-b-01",
        "headers": HEADERS,
        "overrides": OVERRIDES,
        "upstream": UPSTREAM,
        "callback": '{"url":"https://example.com/"}',
    }
    origin |= {name: changes.pop(name) for name in list(changes) if name in origin}
    values: dict[str, Any] = {
        "items": {world.ids.new(): f'{{"n":{n}}}' for n in range(count)},
        "route": world.store.transact(find_route, NAMESPACE, APP, "send", "default"),
        "origin": Origin(**origin),
        "priority": 10,
        "run_at": world.clock.now(),
        "deadline": world.clock.now() + 60 * MICROSECONDS,
        "schedule": "nightly",
        "tick": 17,
        "catch_up": 1,
        "event": "{}",
    }
    return Batch(**{**values, **changes})


def rows(world: World, batches: list[Batch]) -> list[dict[str, Any]]:
    """Places the batches, and reads every column of what was written."""
    world.store.transact(place, batches)
    written = {row["id"]: row for row in table(world.store, "execution")}
    return [{**written[id], "id": ""} for batch in batches for id in batch.items]


@pytest.mark.parametrize("later_s", [0, 60], ids=["due", "later"])
def test_batches_are_written_the_same_alone_and_together(world: World, later_s: int) -> None:
    run_at = world.clock.now() + later_s * MICROSECONDS
    one, two, three = (batch(world, 2, run_at=run_at, parent=None, replay_of=None) for _ in range(3))
    alone, together = rows(world, [one]), rows(world, [two, three])
    assert together == [*alone, *alone]
    assert [column for column in PLACED if alone[0][column] is None] == ["parent", "replay_of"]
    status = Status.SCHEDULED if later_s else Status.QUEUED
    assert {world.status(id) for each in (one, two, three) for id in each.items} == {status}


def test_a_batch_has_its_own_rank_and_its_own_time(world: World, bus: RecordingBus) -> None:
    now = world.clock.now()
    due = batch(world, run_at=now - 5, deadline=None)
    backfilled = batch(world, run_at=now - 7 * MICROSECONDS, ranked_at=now, deadline=None)
    later = batch(world, run_at=now + 9, deadline=now + 20)
    bus.hints.clear()
    world.store.transact(place, [backfilled, due, later])
    assert sorted(bus.hints, key=str) == [
        Due(now + 9),
        Due(now + 20),
        Ready({due.route.lane: now - 5 - 10 * HEAD_START}),
    ]
    claimed = world.claim(world.join())
    assert [claim.id for claim in claimed] == [*due.items, *backfilled.items]


def test_batches_of_several_callers_keep_their_own_values(world: World) -> None:
    one, two = batch(world), batch(world, headers=None, actor="ann")
    mine, hers = rows(world, [one, two])
    assert (mine["actor"], mine["headers"], mine["parent"]) == ("test", HEADERS, one.origin.parent)
    assert (hers["actor"], hers["headers"], hers["parent"]) == ("ann", None, two.origin.parent)


@pytest.mark.parametrize("alone", [True, False])
def test_an_execution_with_blockers_waits_and_keeps_its_place(world: World, alone: bool) -> None:
    first = batch(world, run_at=world.clock.now() - 5, blockers=((Kind.EVENT, "paid"), (Kind.LIMIT, "mail")))
    world.store.transact(place, [first] if alone else [first, batch(world, run_at=world.clock.now() - 4)])
    (id,) = first.items
    assert world.status(id) is Status.WAITING
    world.store.transact(blockers.release, Kind.EVENT, "paid", 10)
    assert world.status(id) is Status.WAITING
    world.store.transact(place, [batch(world)])
    world.store.transact(blockers.release, Kind.LIMIT, "mail", 10)
    assert world.claim(world.join())[0].id == id


def test_placing_an_empty_batch_writes_nothing(world: World, bus: RecordingBus) -> None:
    bus.hints.clear()
    world.store.transact(place, [])
    assert (bus.hints, world.executions()) == ([], [])


def test_headers_and_overrides_are_in_the_claim_and_in_a_replay(world: World) -> None:
    (dead,) = world.fail(headers=HEADERS, overrides=OVERRIDES)
    other = world.ids.new()
    world.store.transact(control.replay, NAMESPACE, {dead: other}, "test")
    world.store.transact(control.repeat, NAMESPACE, dead, world.ids.new(), "test")
    claims = world.claim(world.join())
    assert len(claims) == 2
    assert {(claim.headers, claim.overrides) for claim in claims} == {(HEADERS, OVERRIDES)}


def test_idempotency_keys_do_not_compare_headers_and_overrides(world: World) -> None:
    first = world.accept(key="k", headers=HEADERS)
    again = world.accept(key="k", headers='{"tenant":"bob"}', overrides=OVERRIDES)
    assert (again.id, again.created) == (first.id, False)


def test_a_job_has_an_id_that_its_versions_share(world: World) -> None:
    before = {row["name"]: row["id"] for row in table(world.store, "job")}
    assert len(set(before.values())) == len(before) == 3
    assert all(is_id(id) and id[14] == "7" for id in before.values())
    world.clock.advance(60)
    world.register(Definition(name="send", description="another version"))
    assert {row["name"]: row["id"] for row in table(world.store, "job")} == before


def test_errors_of_one_cause_have_one_fingerprint(world: World) -> None:
    world.fail(2)
    worker = world.join()
    world.enqueue()
    (attempt,) = world.claim(worker)
    world.finish(attempt, msgspec.structs.replace(FAILED, error=msgspec.structs.replace(ERROR, type="TypeError")))
    *alike, other = (row["fingerprint"] for row in sorted(table(world.store, "dead"), key=itemgetter("id")))
    assert len(set(alike)) == 1
    assert other is not None
    assert other not in alike


def test_the_audit_names_the_namespace(world: World) -> None:
    world.register("send", namespace="other")
    for namespace in (NAMESPACE, "other"):
        world.store.transact(define.pause_queue, namespace, "default", "ann", "")
    found = [(row["namespace"], row["actor"], row["action"]) for row in table(world.store, "audit")]
    assert found == [(NAMESPACE, "ann", "queue.pause"), ("other", "ann", "queue.pause")]
