"""GET /overview and /findings: what needs attention, from a namespace in which it really went wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from rota.domain.instant import rfc3339
from rota.domain.job import Definition
from rota.domain.outcome import Error, Failed, GivenBack
from rota.domain.requirement import Needs, Offers
from rota.domain.schedule import CatchUp, Spec
from rota.domain.status import Reason
from rota.domain.trigger import Every
from rota.ops import breakers, control, define, deploy, finish, firing, fleet, job_pauses, schedule, statistics
from rota.ops.upkeep import ALL_SHARDS
from tests.api.server import Server
from tests.support.statistics import fold_all
from tests.support.world import NO_RETRY, World
from tests.workflow.stage import Stage

pytestmark = pytest.mark.usefixtures("clock")

MINUTE = 60 * 10**6
RESET = Failed(Error("ConnectionError", "reset by peer after 2.0 s", ""))


async def overview(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
    world.clock.advance(2)  # An answer is kept for a second.
    return (await client.get("/overview")).raise_for_status().json()  # type: ignore[no-any-return]


async def outlooks(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
    world.clock.advance(2)
    found = (await client.get("/outlook")).raise_for_status().json()["queues"]
    return {one["name"]: one for one in found}


async def findings(client: httpx.AsyncClient, world: World, query: str = "") -> dict[str, Any]:
    world.clock.advance(2)
    found = (await client.get(f"/findings?{query}")).raise_for_status().json()["items"]
    return {one["kind"]: one for one in found}


async def test_case_a_quiet_namespace_needs_nothing(client: httpx.AsyncClient, world: World) -> None:
    worker = world.join(lease_s=3600)
    world.enqueue_many(4)
    for attempt in world.claim(worker, 2):
        world.finish(attempt)
    found = await overview(client, world)
    assert (found["text"], found["findings"]) == ("Nothing needs attention", [])
    numbers = found["numbers"]
    assert (numbers["queued"], numbers["slots"], numbers["busy"], numbers["dead"]) == (2, 10, 0, 0)
    assert (numbers["endedPerMinute"], numbers["successRate"]) == (0.13, 1.0)
    assert (numbers["usualEndedPerMinute"], numbers["usualSuccessRate"]) == (None, None)


async def test_case_a_failing_job_is_found_with_its_error_and_version(client: httpx.AsyncClient, world: World) -> None:
    world.register(Definition(name="charge", description="first"))
    world.register(Definition(name="charge", description="second", pause_after=99))
    worker = world.join(lease_s=3600)
    ids = world.enqueue_many(5, "charge")
    for attempt in world.claim(worker, 5):
        world.finish(attempt, RESET)
    for fold in (lambda: None, lambda: fold_all(world.store)):
        fold()
        (one,) = (await findings(client, world)).values()
        assert (one["kind"], one["subject"]["name"], one["affected"]) == ("failing", "charge", 5)
        assert one["evidence"].startswith("since version 2, 5 failed for good with ConnectionError: reset by peer")
        assert (one["measure"], one["unit"], sum(one["series"]["points"])) == (1.0, "share", 5)
    assert (await overview(client, world))["numbers"]["deadNew"] == 5
    pause = (await findings(client, world))["failing"]["actions"][1]
    assert (await client.request(pause["method"], f"http://localhost{pause['path']}")).status_code == 200
    world.enqueue("charge")
    assert set(await findings(client, world)) == {"failing", "job_paused"}
    assert len(ids) == 5


async def test_case_a_job_that_fails_since_a_deploy_names_the_deploy_before(
    client: httpx.AsyncClient, world: World
) -> None:
    def deployed(pause_after: int) -> int:
        """The id of a worker of this deploy, which is in force."""
        jobs = [Definition(name="charge", pause_after=pause_after, retry=NO_RETRY.retry.describe())]
        number = world.store.transact(deploy.declare, "default", "shop", jobs, [], {}, takes_precedence=True)
        joined = world.join(lease_s=3600, deploy=number)
        world.store.transact(deploy.settle, "default", "shop", 3600)
        return joined

    _, worker = deployed(98), deployed(99)
    world.enqueue_many(5, "charge")
    ended = [finish.Finished(attempt.id, attempt.fence, RESET) for attempt in world.claim(worker, 5)]
    world.store.transact(finish.finish, ended)
    roll_back = (await findings(client, world))["failing"]["actions"][2]
    assert (roll_back["kind"], roll_back["command"]) == ("run", "rota deploys use shop 1")
    (group,) = (await client.get("/errors")).json()["items"]
    detail = (await client.get(f"/errors/{group['fingerprint']}")).json()
    assert detail["rollBack"] == {"version": 2, "to": 1, "isCode": True, "deploy": 1}
    world.store.transact(deploy.use, "default", "shop", 1, 3600, "ann")
    assert len((await findings(client, world))["failing"]["actions"]) == 2


async def test_case_a_version_that_only_fails_stays_found_until_it_succeeds(
    client: httpx.AsyncClient, world: World
) -> None:
    retry = NO_RETRY.retry.describe()
    world.register(Definition(name="charge", description="first", retry=retry))
    worker = world.join(lease_s=360_000)
    world.enqueue("charge")
    world.finish(world.claim(worker, 1)[0])
    world.clock.advance(60)
    world.register(Definition(name="charge", description="second", retry=retry))
    first_at = world.clock.now()
    letters = []
    for _ in range(2):
        letters.append(world.enqueue("charge"))
        world.finish(world.claim(worker, 1)[0], RESET)
        world.clock.advance(3600)
    fold_all(world.store)
    one = (await findings(client, world))["failing"]
    assert (one["since"], one["affected"]) == (rfc3339(first_at), 2)
    assert one["evidence"].startswith("since version 2, 2 failed for good with ConnectionError")
    pause = next(action for action in one["actions"] if action["label"] == "Pause job…")
    (await client.request(pause["method"], f"http://localhost{pause['path']}")).raise_for_status()
    world.store.transact(control.replay, "default", dict(zip(letters, world.ids.many(2), strict=True)), "ann")
    world.clock.advance(3600)
    found = await findings(client, world)
    assert found["failing"]["since"] == rfc3339(first_at)
    assert found["failing"]["evidence"] == "the job is paused; since version 2, 2 executions failed for good"
    assert found["job_paused"]["advice"].endswith("then `rota jobs resume charge`")
    assert (await overview(client, world))["numbers"]["waiting"] == 0
    world.claim(worker, 5)
    assert (await overview(client, world))["numbers"]["waiting"] == 2
    world.store.transact(job_pauses.resume, "default", "shop", "charge", "ann")
    world.enqueue("charge")
    world.clock.advance(2)
    for attempt in world.claim(worker, 5):
        world.finish(attempt)
    assert "failing" not in await findings(client, world)


async def test_case_what_cannot_run_and_what_is_paused(client: httpx.AsyncClient, server: Server, world: World) -> None:
    world.register(
        Definition(name="render", needs=Needs(pool="video")), Definition(name="pay", needs=Needs(breakers=["bank"]))
    )
    worker = world.join(lease_s=36_000)
    world.enqueue_many(3, "render", queue="video")
    world.enqueue_many(2, queue="mail")
    world.enqueue("count")
    world.enqueue("pay")
    server.store.transact(define.pause_queue, "default", "mail", "oncall", "provider is down")
    server.store.transact(job_pauses.pause, "default", "shop", "count", "ops", "wait")
    server.store.transact(fleet.tell_trouble, worker, {"commands": "No space left on device"})
    world.clock.advance(60)
    server.store.transact(statistics.write_samples, server.store.read(statistics.observe))
    found = await findings(client, world)
    assert found["no_worker"]["text"] == "render cannot run: no live worker has pool video"
    assert found["no_worker"]["affected"] == 3
    assert found["queue_paused"]["text"] == "Queue mail is paused by oncall: “provider is down”"
    assert found["queue_paused"]["series"]["points"][-1] == 2
    assert found["job_paused"]["affected"] == 1
    assert found["worker_trouble"]["evidence"].startswith("No space left on device; ")
    resume = found["queue_paused"]["actions"][0]
    await client.request(resume["method"], f"http://localhost{resume['path']}")
    assert "queue_paused" not in await findings(client, world)
    assert set(await findings(client, world, "kind=no_worker&kind=failing")) == {"no_worker"}
    assert set(await findings(client, world, "severity=warning")) == {"job_paused"}
    assert set(await findings(client, world, "subject=render")) == {"no_worker"}
    assert (await client.get("/findings?kind=nothing")).status_code == 400


async def test_case_a_job_whose_only_worker_is_in_trouble_stays_found_while_it_is_claimed_and_given_back(
    client: httpx.AsyncClient, server: Server, world: World
) -> None:
    world.register(Definition(name="resize", needs=Needs(pool="images", isolated=True)))
    worker = world.join(lease_s=36_000, offers=Offers(pools=("images",)), name="w-images")
    server.store.transact(fleet.tell_trouble, worker, {"isolated jobs": "[Errno 28] No space left on device"})
    id = world.enqueue("resize", queue="images", start_within_s=600)

    async def seen() -> dict[str, Any]:
        one: dict[str, Any] = (await findings(client, world))["no_worker"]
        assert one["text"] == "resize cannot run: no live worker with pool images can start a process for it"
        assert (one["affected"], one["actions"][0]["link"]) == (1, f"/executions/{id}")
        assert one["evidence"].endswith(". w-images: [Errno 28] No space left on device")
        queue = (await outlooks(client, world))["images"]
        assert (queue["state"], queue["outlook"], queue["slots"]) == ("no_worker", "never", 0)
        return one

    ready = await seen()
    assert ready["evidence"].startswith("1 wait in images, oldest 2 s; the first is skipped in 9 m 58 s, at its ")
    (attempt,) = world.claim(worker, 1)
    assert (await seen())["findingId"] == ready["findingId"]
    world.finish(attempt, GivenBack(Reason.NOT_BEGUN, 30.0))
    assert (await client.get(f"/executions/{id}")).json()["status"] == "scheduled"
    again = await seen()
    assert (again["findingId"], again["since"]) == (ready["findingId"], ready["since"])
    server.store.transact(fleet.tell_trouble, worker, {})
    assert await findings(client, world) == {}


async def test_case_a_breaker_a_long_execution_and_a_lost_worker(
    client: httpx.AsyncClient, server: Server, world: World
) -> None:
    world.register(Definition(name="pay", needs=Needs(breakers=["bank"])))
    worker = world.join(lease_s=36_000)
    for _ in range(6):
        world.enqueue("send")
        (attempt,) = world.claim(worker, 1)
        world.clock.advance(10)
        world.finish(attempt)
    world.enqueue("send")
    (runs,) = world.claim(worker, 1)
    server.store.transact(breakers.open_by_hand, "default", "bank", "ops")
    world.enqueue("pay")
    gone = world.join(name="gone", lease_s=36_000)
    world.enqueue("receive")
    world.claim(gone, 1, jobs=["receive"])
    world.clock.advance(120)
    server.store.transact(fleet.declare_dead, gone, "killed by signal 9")
    found = await findings(client, world)
    assert set(found) == {"breaker_open", "long_running", "worker_lost"}
    assert found["breaker_open"]["affected"] == 1
    assert (found["long_running"]["subject"]["id"], found["long_running"]["usual"]) == (runs.id, 10.0)
    assert found["worker_lost"]["evidence"] == "it held 1 execution, which other workers get; killed by signal 9"
    assert found["worker_lost"]["severity"] == "warning"


async def test_case_ticks_that_overlap(client: httpx.AsyncClient, server: Server, world: World) -> None:
    worker = world.join(lease_s=36_000)
    spec = Spec(job="send", trigger=Every(period=MINUTE))
    server.store.transact(schedule.put, "default", "shop", "sync", spec, "test")
    for _ in range(4):
        world.clock.advance(60)
        server.store.transact(firing.fire, ALL_SHARDS, world.ids.many)
        world.promote()
        world.claim(worker, 10)
    found = await findings(client, world)
    assert found["ticks_overlap"]["subject"]["name"] == "sync"
    assert found["ticks_overlap"]["affected"] == 3
    actions = found["ticks_overlap"]["actions"]
    assert [one["label"] for one in actions] == [
        "Open schedule",
        "Open execution",
        "Cancel execution…",
        "Pause schedule…",
    ]
    assert (await client.post(f"http://localhost{actions[3]['path']}")).status_code == 200
    found = await findings(client, world)
    assert set(found) == {"long_running"}
    assert found["long_running"]["evidence"] == "attempt 1; 3 ticks of schedule sync did not run because of it"
    world.clock.advance(10 * 3600)
    found = await findings(client, world)
    cancel = found["long_running"]["actions"][1]
    assert (await client.post(f"http://localhost{cancel['path']}")).status_code == 200


async def test_case_ticks_that_nothing_looked_at_and_ticks_that_were_missed(
    client: httpx.AsyncClient, server: Server, world: World
) -> None:
    spec = Spec(job="send", trigger=Every(period=MINUTE), catch_up=CatchUp.NONE)
    server.store.transact(schedule.put, "default", "shop", "sync", spec, "test")
    world.clock.advance(10 * 60)
    found = await findings(client, world)
    assert set(found) == {"schedule_overdue"}
    overdue = found["schedule_overdue"]
    assert (overdue["subject"]["name"], overdue["severity"]) == ("sync", "warning")
    assert overdue["text"] == "sync: its tick was due 9 m 02 s ago"
    server.store.transact(firing.fire, ALL_SHARDS, world.ids.many)
    found = await findings(client, world)
    assert "schedule_overdue" not in found
    missed = found["ticks_missed"]
    assert (missed["subject"]["name"], missed["affected"], missed["measure"]) == ("sync", 9, 9.0)
    assert missed["evidence"].startswith("missed: no worker was there in time; the last ")
    assert [one["label"] for one in missed["actions"]] == ["Open schedule"]


async def test_case_a_queue_that_grows(client: httpx.AsyncClient, server: Server, world: World) -> None:
    worker = world.join(lease_s=36_000)
    for count in (10, 40):
        world.enqueue_many(count, queue="mail")
        world.clock.advance(90)
        server.store.transact(statistics.write_samples, server.store.read(statistics.observe))
    for attempt in world.claim(worker, 5):
        world.finish(attempt)
    for fold in (lambda: None, lambda: fold_all(world.store)):
        fold()
        found = await findings(client, world)
        assert set(found) == {"queue_growing"}
        grows = found["queue_growing"]
        assert (grows["subject"]["name"], grows["severity"], grows["affected"]) == ("mail", "critical", 45)
        assert grows["text"] == "Queue mail grows: from 10 to 45 queued in 2 minutes"
        assert [point for point in grows["series"]["points"] if point] == [10, 50]
    for attempt in world.claim(worker, 36):
        world.finish(attempt)
    assert await findings(client, world) == {}


async def test_case_a_worker_whose_heartbeats_are_late(client: httpx.AsyncClient, server: Server, world: World) -> None:
    worker = world.join(lease_s=30, name="slow")
    for pause_s in (10, 25, 10, 25):
        assert await findings(client, world) == {}
        world.clock.advance(pause_s - 2)
        server.store.transact(fleet.beat, [worker], 30)
    late = (await findings(client, world))["worker_late"]
    assert (late["subject"]["name"], late["measure"], late["severity"]) == ("slow", 2.0, "warning")
    assert late["evidence"].startswith("2 of the last 4 were late")


async def test_case_a_paused_run_and_an_approval_without_an_answer(client: httpx.AsyncClient, world: World) -> None:
    stage = Stage(world)
    ask = {"id": "ask", "approve": {"text": "Release?", "timeout": "2d"}}
    stage.workflow("release", ask, {"id": "go", "job": "echo", "with": {"x": {"$": "ask.approved"}}})
    run = stage.start("release")
    stage.work()
    (waiting,) = (await findings(client, world)).values()
    assert (waiting["kind"], waiting["severity"]) == ("approval_waiting", "warning")
    assert (waiting["subject"]["name"], waiting["actions"][0]["link"]) == ("Release?", f"/runs/{run}")
    assert (await overview(client, world))["numbers"]["waiting"] == 1
    stage.pause(run)
    found = await findings(client, world)
    assert set(found) == {"run_paused", "approval_waiting"}
    paused = found["run_paused"]
    assert (paused["subject"]["id"], paused["subject"]["name"]) == (run, "release")
    assert paused["text"] == "A run of release is paused by test: “why not”"
    resume = paused["actions"][1]
    assert (await client.request(resume["method"], f"http://localhost{resume['path']}")).status_code == 200
    world.clock.advance(25 * 3600)
    found = await findings(client, world)
    assert set(found) == {"approval_overdue"}
    overdue = found["approval_overdue"]
    assert (overdue["subject"]["name"], overdue["text"].startswith("No answer to “Release?” for ")) == (
        "Release?",
        True,
    )
    approve = overdue["actions"][1]
    assert (await client.request(approve["method"], f"http://localhost{approve['path']}")).status_code == 200
    assert await findings(client, world) == {}


async def test_case_the_outlook_of_queues(client: httpx.AsyncClient, server: Server, world: World) -> None:
    world.register(Definition(name="render", needs=Needs(pool="video")))
    worker = world.join(lease_s=36_000)
    world.enqueue_many(300, queue="mail")
    for attempt in world.claim(worker, 150):
        world.finish(attempt)
    world.enqueue("render", queue="video")
    world.enqueue_many(2, queue="held")
    server.store.transact(define.pause_queue, "default", "held", "ops", "")
    world.clock.advance(240)
    found = (await client.get("/outlook")).raise_for_status().json()["queues"]
    queues = {one["name"]: one for one in found}
    assert {name: (one["state"], one["queued"], one["outlook"]) for name, one in queues.items()} == {
        "default": ("active", 0, "now"),
        "held": ("paused", 2, "paused"),
        "mail": ("active", 150, "growing"),
        "video": ("no_worker", 1, "never"),
    }
    assert queues["mail"]["jobs"] == [{"app": "shop", "job": "send", "queued": 150, "running": 0}]
    assert (queues["mail"]["slots"], queues["video"]["slots"], queues["mail"]["inPerS"] > 0) == (10, 0, True)
    assert queues["held"]["paused"]["by"] == "ops"


async def test_case_a_queue_that_no_worker_can_run_says_what_is_missing(
    client: httpx.AsyncClient, server: Server, world: World
) -> None:
    world.register(
        Definition(name="render", needs=Needs(pool="video")),
        Definition(name="resize", needs=Needs(pool="images", isolated=True)),
    )
    worker = world.join(lease_s=36_000, offers=Offers(pools=("default", "images")))
    server.store.transact(fleet.tell_trouble, worker, {"isolated jobs": "No space left on device"})
    world.enqueue("render", queue="video")
    world.enqueue("resize", queue="images")
    world.enqueue("send")
    queues = await outlooks(client, world)
    images = queues["images"]
    assert (images["state"], images["outlook"], images["slots"]) == ("no_worker", "never", 0)
    assert images["lacks"] == "no live worker with pool images can start a process for resize"
    assert queues["video"]["lacks"] == "no live worker has pool video"
    assert (queues["default"]["lacks"], queues["default"]["outlook"]) == (None, "unknown")


async def test_case_a_queue_says_how_many_wait_and_for_what(
    client: httpx.AsyncClient, server: Server, world: World
) -> None:
    worker = world.join(lease_s=36_000)
    world.enqueue_many(25, "count", queue="payments")
    server.store.transact(job_pauses.pause, "default", "shop", "count", "ops", "")
    world.claim(worker, 50)
    wait = {"kind": "job_paused", "app": "shop", "job": "count", "count": 25, "text": "job count is paused"}
    queue = (await outlooks(client, world))["payments"]
    assert (queue["queued"], queue["running"], queue["waiting"], queue["waits"]) == (0, 0, 25, [wait])
    for path in ("/queues/payments", "/queues"):
        answer = (await client.get(path)).json()
        one = next(one for one in answer.get("items", [answer]) if one["name"] == "payments")
        assert (one["waiting"], one["waits"]) == (25, [wait])
    assert [one["waiting"] for name, one in (await outlooks(client, world)).items() if name != "payments"] == [0]


async def test_case_a_queue_that_was_resumed_a_moment_ago_has_no_forecast(
    client: httpx.AsyncClient, server: Server, world: World
) -> None:
    worker = world.join(lease_s=36_000)
    world.enqueue_many(40, queue="mail")
    server.store.transact(define.pause_queue, "default", "mail", "ops", "")
    world.clock.advance(1200)
    server.store.transact(define.resume_queue, "default", "mail", "ops")
    for attempt in world.claim(worker, 5):
        world.finish(attempt)
    queue = (await outlooks(client, world))["mail"]
    assert (queue["queued"], queue["outlook"], queue["emptyInS"]) == (35, "unknown", None)
    world.clock.advance(18)
    queue = (await outlooks(client, world))["mail"]
    assert (queue["outlook"], queue["emptyInS"]) == ("empties", pytest.approx(35 / (5 / 22), rel=0.1))


async def test_case_open_pages_share_one_read(client: httpx.AsyncClient, server: Server, world: World) -> None:
    reads = []
    before = server.store.read

    def counted(query: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(query.__name__)
        return before(query, *args, **kwargs)

    server.store.read = counted  # type: ignore[method-assign]
    answers = await asyncio.gather(*(client.get(path) for path in ("/overview", "/findings", "/outlook") * 5))
    assert {one.status_code for one in answers} == {200}
    assert reads.count("_read") == 1
    world.clock.advance(1.5)
    await client.get("/overview")
    assert reads.count("_read") == 2
