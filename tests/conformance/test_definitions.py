"""Definitions as data: versions are keyed by content, queues can be changed and paused."""

from __future__ import annotations

import pytest

from rota.domain.errors import DefinitionError, UnknownJob
from rota.domain.job import Definition, Queue, content
from rota.domain.rank import Policy
from rota.ops import define
from rota.store import definition_reader, reader
from rota.store.hints import Ready
from rota.store.reader import QueueRow
from tests.support.world import APP, NAMESPACE, NO_RETRY, RecordingBus, World


def version_of(world: World, job: str = "send") -> int:
    return world.execution(world.enqueue(job)).job_version


def queue(world: World, name: str) -> QueueRow:
    return next(row for row in world.store.read(reader.queues, NAMESPACE) if row.name == name)


def test_new_content_is_a_new_version(world: World) -> None:
    before = version_of(world)
    world.register(Definition(name="send", timeout_s=5))
    assert version_of(world) > before


def test_registering_the_same_content_again_changes_nothing(world: World) -> None:
    before = version_of(world)
    world.register("send")
    assert version_of(world) == before


def test_old_nodes_of_a_rolling_deploy_do_not_restore_the_old_version(world: World) -> None:
    world.register(Definition(name="send", timeout_s=5))
    new = version_of(world)
    world.register("send")
    world.register(Definition(name="send", timeout_s=5))
    assert version_of(world) == new


def test_an_execution_keeps_the_version_it_was_enqueued_with(world: World) -> None:
    id = world.enqueue()
    before = world.execution(id).job_version
    world.register(Definition(name="send", timeout_s=5))
    assert world.execution(id).job_version == before


def test_the_registered_definition_can_be_read(world: World) -> None:
    definition = Definition(name="report", queue="slow", description="Writes a report.")
    world.register(definition)
    assert world.store.read(reader.definition, NAMESPACE, APP, "report") == content(definition)
    assert world.store.read(reader.definition, NAMESPACE, APP, "nothing") is None
    assert "report" in {row.name for row in world.store.read(definition_reader.all_jobs, NAMESPACE)}


def test_the_same_job_name_in_two_apps_is_two_jobs(world: World) -> None:
    world.register(Definition(name="send", timeout_s=1), app="other")
    assert world.store.read(reader.apps_of_job, NAMESPACE, "send") == ["other", "shop"]
    assert world.store.read(reader.definition, NAMESPACE, APP, "send") == content(
        Definition(name="send", retry=NO_RETRY.retry.describe())
    )


def test_an_unknown_job_is_refused_by_name(world: World) -> None:
    with pytest.raises(UnknownJob, match="'shop' has no job 'sned'"):
        world.enqueue("sned")
    with pytest.raises(UnknownJob):
        world.enqueue("send", app="missing")
    with pytest.raises(UnknownJob):
        world.enqueue("send", namespace="nowhere")


def test_a_refused_enqueue_creates_no_queue(world: World) -> None:
    with pytest.raises(UnknownJob):
        world.enqueue("sned", queue="brand-new")
    assert "brand-new" not in {row.name for row in world.store.read(reader.queues, NAMESPACE)}


def test_an_undeclared_queue_is_created_with_its_first_execution(world: World) -> None:
    id = world.enqueue(queue="surprise")
    assert world.execution(id).queue == "surprise"
    assert queue(world, "surprise").queued == 1
    assert [attempt.id for attempt in world.claim(world.join())] == [id]


def test_a_declared_queue_keeps_the_last_declaration(world: World) -> None:
    world.register(queues=[Queue(name="mail", policy=Policy.FIFO, max_depth=5)])
    assert (queue(world, "mail").policy, queue(world, "mail").max_depth) == ("fifo", 5)
    world.register(queues=[Queue(name="mail")])
    assert (queue(world, "mail").policy, queue(world, "mail").max_depth) == ("priority", None)


def test_registering_an_app_that_does_not_declare_a_queue_leaves_the_queue_as_it_is(world: World) -> None:
    world.register(queues=[Queue(name="mail", policy=Policy.FIFO, max_depth=5)])
    world.register(Definition(name="letter", queue="mail"), app="other")
    assert (queue(world, "mail").policy, queue(world, "mail").max_depth) == ("fifo", 5)


def test_nothing_is_claimed_from_a_paused_queue_until_it_is_resumed(world: World) -> None:
    id, worker = world.enqueue(), world.join()
    assert world.store.transact(define.pause_queue, NAMESPACE, "default", "ann", "stock-taking")
    row = queue(world, "default")
    assert (row.paused_by, row.paused_note, row.paused_at) == ("ann", "stock-taking", world.clock.now())
    assert world.claim(worker) == []
    assert not world.store.read(reader.has_ready, world.served())
    assert world.store.transact(define.resume_queue, NAMESPACE, "default", "ann")
    assert [attempt.id for attempt in world.claim(worker)] == [id]


def test_running_executions_of_a_paused_queue_finish(world: World) -> None:
    _, attempt = world.start()
    world.store.transact(define.pause_queue, NAMESPACE, "default", "ann", "")
    assert world.finish(attempt) == []


def test_a_paused_queue_does_not_block_another(world: World) -> None:
    world.enqueue(queue="slow")
    quick = world.enqueue(queue="quick")
    world.store.transact(define.pause_queue, NAMESPACE, "slow", "ann", "")
    assert [attempt.id for attempt in world.claim(world.join())] == [quick]


def test_pausing_twice_or_resuming_a_queue_that_is_not_paused_changes_nothing(world: World) -> None:
    assert not world.store.transact(define.resume_queue, NAMESPACE, "default", "ann")
    assert world.store.transact(define.pause_queue, NAMESPACE, "default", "ann", "first")
    assert not world.store.transact(define.pause_queue, NAMESPACE, "default", "bob", "second")
    assert queue(world, "default").paused_by == "ann"


def test_an_unknown_queue_cannot_be_paused(world: World) -> None:
    with pytest.raises(DefinitionError, match="no queue 'mial'"):
        world.store.transact(define.pause_queue, NAMESPACE, "mial", "ann", "")


def test_resuming_a_queue_sends_a_hint_to_workers(world: World, bus: RecordingBus) -> None:
    world.enqueue()
    world.store.transact(define.pause_queue, NAMESPACE, "default", "ann", "")
    bus.hints.clear()
    world.store.transact(define.resume_queue, NAMESPACE, "default", "ann")
    (hint,) = bus.hints
    assert isinstance(hint, Ready)
    assert hint.lanes
