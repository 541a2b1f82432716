"""Dead letters: failed executions that were neither replayed nor discarded."""

from __future__ import annotations

import pytest

from rota.domain.errors import StoreError, UnknownExecution
from rota.domain.job import Definition
from rota.domain.outcome import Failed
from rota.domain.status import Reason, Status
from rota.ids import LAST_ID
from rota.ops import control
from rota.store import reader
from tests.support.world import APP, ERROR, FAILED, NAMESPACE, NO_RETRY, World

SECOND = 1_000_000


def replay(world: World, ids: list[str]) -> list[str]:
    successors = dict(zip(ids, world.ids.many(len(ids)), strict=True))
    return world.store.transact(control.replay, NAMESPACE, successors, "test")


def ids_of(world: World, reason: str | None = None, **wanted: object) -> list[str]:
    return [row.id for row in world.dead(reason, **wanted)]


def test_a_failed_execution_is_a_dead_letter_with_its_error(world: World) -> None:
    (id,) = world.fail(queue="mail")
    (row,) = world.dead()
    assert (row.id, row.app, row.job, row.queue, row.reason) == (id, APP, "send", "mail", Reason.ERROR)
    assert row.failed_at == world.clock.now()
    assert row.error is not None
    assert "boom" in row.error


def test_other_ends_are_no_dead_letters(world: World) -> None:
    _, attempt = world.start()
    world.finish(attempt)
    world.cancel(world.enqueue())
    assert world.dead() == []


def test_the_newest_comes_first_page_by_page(world: World) -> None:
    ids = world.fail(25)
    seen: list[str] = []
    before = LAST_ID
    while page := ids_of(world, limit=10, before=before):
        seen += page
        before = page[-1]
    assert seen == sorted(ids, reverse=True)


def test_dead_letters_can_be_filtered(world: World) -> None:
    (mail,) = world.fail(job="send", queue="mail")
    world.clock.advance(60)
    since = world.clock.now()
    (count,) = world.fail(job="count", queue="slow")
    world.enqueue("send")
    (attempt,) = world.claim(world.join())
    error = Failed(type(ERROR)("KeyError", "Missing SKU 100%_x"), Reason.BAD_ARGUMENTS, permanent=True)
    world.finish(attempt, error, NO_RETRY)
    assert ids_of(world, job="count") == [count]
    assert ids_of(world, queue="mail") == [mail]
    assert ids_of(world, since=since) == [attempt.id, count]
    assert ids_of(world, reason=Reason.BAD_ARGUMENTS) == [attempt.id]
    assert ids_of(world, error="missing sku") == [attempt.id]
    assert ids_of(world, error="100%_x") == [attempt.id]
    assert ids_of(world, error="%") == [attempt.id]
    assert ids_of(world, error="boom", queue="slow") == [count]
    assert ids_of(world, job="nothing") == []


def test_a_replay_is_a_new_execution_linked_to_the_old_one(world: World) -> None:
    (id,) = world.fail(queue="mail", priority=5, tags='["t"]')
    (new,) = replay(world, [id])
    row = world.execution(new)
    assert (row.status, row.replay_of, row.job, row.queue, row.priority) == (Status.QUEUED, id, "send", "mail", 5)
    assert (row.arguments, row.tags, row.fence, row.attempts) == ('{"n":0}', '["t"]', 0, 0)
    assert world.status(id) is Status.FAILED
    assert world.dead() == []


def test_many_are_replayed_at_once(world: World) -> None:
    ids = world.fail(300)
    made = replay(world, ids)
    assert len(made) == 300
    assert {world.store.read(reader.replayed_as, id) for id in ids} == set(made)
    assert world.dead() == []
    assert len(world.claim(world.join(), 1000)) == 300


def test_replaying_twice_makes_one_new_execution(world: World) -> None:
    ids = world.fail(2)
    assert len(replay(world, [ids[0]])) == 1
    assert replay(world, [ids[0]]) == []
    assert len(replay(world, ids)) == 1


def test_a_replay_skips_executions_that_are_no_dead_letters(world: World) -> None:
    queued = world.enqueue()
    assert replay(world, [queued, world.ids.new(), "nonsense"]) == []
    assert world.executions() == [queued]


def test_a_replay_that_fails_again_is_a_dead_letter_again(world: World) -> None:
    (id,) = world.fail()
    (new,) = replay(world, [id])
    (attempt,) = world.claim(world.join())
    world.finish(attempt, FAILED)
    assert ids_of(world) == [new]


def test_discarding_takes_off_the_list_and_keeps_the_history(world: World) -> None:
    ids = world.fail(3)
    assert world.store.transact(control.discard, NAMESPACE, ids[:2], "test") == 2
    assert world.store.transact(control.discard, NAMESPACE, ids[:2], "test") == 0
    assert ids_of(world) == [ids[2]]
    assert world.status(ids[0]) is Status.FAILED
    assert len(world.attempts(ids[0])) == 1


def test_a_discarded_execution_can_still_be_repeated_by_its_id(world: World) -> None:
    (id,) = world.fail()
    world.store.transact(control.discard, NAMESPACE, [id], "test")
    new = world.store.transact(control.repeat, NAMESPACE, id, world.ids.new(), "test")
    assert world.execution(new).replay_of == id
    assert world.store.read(reader.replayed_as, id) == new


def test_repeating_a_dead_letter_takes_it_off_the_list(world: World) -> None:
    (id,) = world.fail()
    world.store.transact(control.repeat, NAMESPACE, id, world.ids.new(), "test")
    assert world.dead() == []


def test_an_unknown_execution_cannot_be_repeated(world: World) -> None:
    with pytest.raises(UnknownExecution):
        world.store.transact(control.repeat, NAMESPACE, world.ids.new(), world.ids.new(), "test")


def test_dead_letters_of_another_namespace_are_not_visible(world: World) -> None:
    (id,) = world.fail()
    assert world.store.transact(control.replay, "tenant", {id: world.ids.new()}, "test") == []
    assert world.store.transact(control.discard, "tenant", [id], "test") == 0
    with pytest.raises(UnknownExecution):
        world.store.transact(control.repeat, "tenant", id, world.ids.new(), "test")
    assert world.store.read(reader.dead, "tenant", reader.Filter()) == []
    assert ids_of(world) == [id]


def test_if_one_of_many_cannot_be_replayed_all_stay_dead_letters(world: World) -> None:
    ids = world.fail(2)
    used = world.enqueue()
    successors = {ids[0]: world.ids.new(), ids[1]: used}
    with pytest.raises(StoreError):
        world.store.transact(control.replay, NAMESPACE, successors, "test")
    assert ids_of(world) == sorted(ids, reverse=True)
    assert world.executions(status=Status.QUEUED) == [used]


def test_counts_and_membership_agree_with_the_list(world: World) -> None:
    ids = world.fail(3)
    queued = world.enqueue()
    assert world.store.read(reader.dead_count, NAMESPACE) == 3
    assert world.store.read(reader.are_dead, NAMESPACE, [*ids, queued]) == set(ids)


def test_a_dead_letter_is_replayed_with_the_version_in_force(world: World) -> None:
    (id,) = world.fail()
    before = world.execution(id).job_version
    world.register(Definition(name="send", timeout_s=5))
    (new,) = replay(world, [id])
    assert world.execution(new).job_version > before
