"""The shapes that commands print and the API returns have the names that the API fixes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from rota.domain.outcome import Succeeded
from rota.domain.schedule import Spec
from rota.domain.status import Status
from rota.domain.trigger import Every
from rota.ops import schedule as operations
from rota.store import definition_reader
from rota.store.reader import Filter
from rota.views import dead_letter, execution, job_detail, queue, schedule, worker
from rota.views.shape import Shape, to_json
from tests.support.world import APP, FAILED, NAMESPACE, NO_RETRY, THREE_TRIES, World

SUMMARY = {
    *(
        "executionId",
        "status",
        "jobId",
        "job",
        "app",
        "version",
        "queue",
        "priority",
        "reason",
        "retryCount",
        "errorMessage",
    ),
    *("workerId", "createdAt", "runAt", "startedAt", "completedAt", "tags", "parentId", "replayOf"),
}
DETAIL = {
    *("arguments", "result", "error", "progress", "progressDetail", "why", "attempts", "fence", "crashes"),
    *("replayedBy", "lastHeartbeat", "tick", "lateBy", "catchUp", "key", "headers", "actor", "cancelRequestedAt"),
}
QUEUE = {"name", "policy", "maxDepth", "queued", "scheduled", "running", "waiting", "dead", "oldestAt", "paused"}
WORKER = {"workerId", "state", "slots", "busy", "queues", "offers", "trouble", "leaseUntil"}
JOB = {
    "jobId",
    "name",
    "app",
    "version",
    "state",
    "paused",
    "queue",
    "priority",
    "retry",
    "timeout",
    "parameters",
    "description",
}


def plain(shape: Shape) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(to_json(shape))
    return found


def listed(world: World, id: str) -> dict[str, Any]:
    found = world.store.read(execution.executions, NAMESPACE, Filter())
    return next(plain(one) for one in found.items if one.execution_id == id)


def jobs(world: World) -> list[job_detail.Job]:
    rows = world.store.read(definition_reader.jobs, NAMESPACE, None, 100)
    return world.store.read(job_detail.jobs, NAMESPACE, rows)


def detail(world: World, id: str) -> dict[str, Any]:
    return plain(world.store.read(execution.execution, NAMESPACE, id))


def test_an_execution_has_the_members_of_the_api(world: World) -> None:
    x = world.enqueue()
    assert listed(world, x).keys() >= SUMMARY
    assert detail(world, x).keys() >= SUMMARY | DETAIL
    assert listed(world, x).items() <= detail(world, x).items(), "a list and one execution agree"


def test_queues_workers_and_jobs_have_the_members_of_the_api(world: World) -> None:
    world.join()
    assert plain(world.store.read(queue.queues, NAMESPACE)[0]).keys() >= QUEUE
    assert plain(world.store.read(worker.workers, NAMESPACE)[0]).keys() >= WORKER
    assert plain(jobs(world)[0]).keys() >= JOB


def test_an_execution_shows_its_own_headers_and_rules(world: World) -> None:
    x = world.enqueue(headers='{"tenant":"a"}', overrides='{"timeout_s":5.0,"retry":{"policy":"Fixed","attempts":3}}')
    shown = detail(world, x)
    assert shown["headers"] == {"tenant": "a"}
    assert (shown["timeout"], shown["retry"]) == (5.0, {"policy": "Fixed", "attempts": 3})
    assert shown["jobId"] in {one.job_id for one in jobs(world) if one.name == "send"}


def test_a_shape_is_the_same_after_a_way_through_json(world: World) -> None:
    """So an HTTP client can give users what a client with a database gives them."""
    x, *_ = world.fail(2)
    world.enqueue(overrides='{"timeout_s":0.1}', tags='["null","1"]')
    shapes: list[Shape] = [world.store.read(execution.execution, NAMESPACE, id) for id in (x, world.enqueue())]
    shapes += world.store.read(execution.executions, NAMESPACE, Filter()).items
    shapes += world.store.read(dead_letter.dead_letters, NAMESPACE, Filter(), None).items
    shapes += jobs(world)
    trigger = Every(90_000_001, 1)
    spec = Spec(job="send", trigger=trigger, jitter_s=0.25)
    world.store.transact(operations.put, NAMESPACE, APP, "s", spec, "test")
    one = world.store.read(schedule.schedule, NAMESPACE, APP, "s")
    assert (one.every, one.phase, one.window) == (timedelta(seconds=90.000001), timedelta(microseconds=1), timedelta(1))
    assert plain(one)["every"] == 90.000001
    for shape in [*shapes, one]:
        assert msgspec.json.decode(to_json(shape), type=type(shape), strict=False) == shape


def test_an_execution_shows_its_retries_and_its_last_error(world: World) -> None:
    x = world.enqueue()
    shown = [listed(world, x)]
    for _ in range(2):
        (attempt,) = world.claim(world.join(), 1)
        shown.append(listed(world, x))
        world.finish(attempt, FAILED, THREE_TRIES)
        shown.append(listed(world, x))
        world.clock.advance(3600)
        world.promote()
    (attempt,) = world.claim(world.join(), 1)
    world.finish(attempt, Succeeded("1"), NO_RETRY)
    shown.append(listed(world, x))
    assert [one["retryCount"] for one in shown] == [0, 0, 0, 1, 1, 2]
    assert [one["errorMessage"] is None for one in shown] == [True, True, False, False, False, True]
    whole = detail(world, x)
    assert (whole["result"], whole["progress"], whole["error"]) == (1, 100, None)
    assert [one["attempt"] for one in whole["attempts"]] == [1, 2, 3]


def test_a_page_says_whether_there_are_more(world: World) -> None:
    world.fail(3)
    wanted = Filter(limit=2)
    for read in (
        world.store.read(execution.executions, NAMESPACE, wanted),
        world.store.read(dead_letter.dead_letters, NAMESPACE, wanted, None),
    ):
        assert (len(read.items), read.has_more) == (2, True)
    assert not world.store.read(execution.executions, NAMESPACE, Filter(limit=3)).has_more


def test_a_running_execution_names_its_worker(world: World) -> None:
    x = world.enqueue()
    id = world.join()
    world.claim(id)
    shown = listed(world, x)
    assert (shown["status"], shown["workerId"]) == (Status.RUNNING.value, str(id))
    assert shown["lastHeartbeat"] is not None
