"""GET /stats: counts, percentiles and samples over time."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from rota.domain import payload
from rota.domain.access import Role
from rota.domain.instant import rfc3339
from rota.domain.outcome import Failed, Succeeded
from rota.ops import finish, statistics
from rota.ops.finish import Finished
from tests.api.server import Server, code
from tests.support.statistics import fold_all
from tests.support.world import World

pytestmark = pytest.mark.usefixtures("clock")

MINUTE = 60 * 10**6


async def stats(client: httpx.AsyncClient, query: str) -> dict[str, Any]:
    answer = await client.get(f"/stats?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def values(series: dict[str, Any]) -> list[Any]:
    return [value for _, value in series["points"]]


def finish_some(world: World, *, after_s: float = 1.0) -> None:
    worker = world.join(lease_s=10_000)
    attempts = world.claim(worker)
    world.clock.advance(after_s)
    reports = [Finished(one.id, one.fence, Succeeded("1")) for one in attempts]
    world.store.transact(finish.finish, reports)


async def test_counts_by_minute(client: httpx.AsyncClient, world: World) -> None:
    start = world.clock.now()
    for count in (3, 0, 2):
        world.enqueue_many(count)
        finish_some(world)
        world.clock.advance(59)
    for _ in range(2):
        found = await stats(client, f"metrics=success&metrics=created&from={rfc3339(start)}&step=60")
        assert (found["from"], found["to"], found["step"]) == (rfc3339(start), rfc3339(start + 4 * MINUTE), 60)
        assert [(one["metric"], one["labels"], values(one)) for one in found["series"]] == [
            ("success", {}, [3, 0, 2, 0]),
            ("created", {}, [3, 0, 2, 0]),
        ]
        assert found["series"][0]["points"][1] == [rfc3339(start + MINUTE), 0]
        fold_all(world.store)
    world.clock.advance(60 * 60)
    hours = await stats(client, f"metrics=success&from={rfc3339(start)}&step=1h")
    assert values(hours["series"][0]) == [5, 0]


async def test_groups_and_times(client: httpx.AsyncClient, world: World) -> None:
    world.enqueue_many(3, "send")
    world.enqueue("count", queue="slow")
    finish_some(world, after_s=10)
    found = await stats(client, "metrics=runTime.p95&metrics=success&by=job&by=queue&from=10m")
    assert [(one["metric"], one["labels"]) for one in found["series"]] == [
        ("runTime.p95", {"job": "count", "queue": "slow"}),
        ("runTime.p95", {"job": "send", "queue": "default"}),
        ("success", {"job": "count", "queue": "slow"}),
        ("success", {"job": "send", "queue": "default"}),
    ]
    assert [sum(filter(None, values(one))) for one in found["series"][2:]] == [1, 3]
    (time,) = [value for value in values(found["series"][0]) if value is not None]
    assert 5 < time < 20
    assert (await stats(client, "metrics=success&by=app&by=pool"))["series"][0]["labels"] == {
        "app": "shop",
        "pool": "default",
    }


async def test_samples_by_queue(client: httpx.AsyncClient, server: Server, world: World) -> None:
    world.enqueue_many(2)
    world.enqueue(queue="slow")
    world.join(lease_s=1000)
    world.clock.advance(60)
    server.store.transact(statistics.write_samples, server.store.read(statistics.observe))
    assert (await stats(client, "metrics=queued&by=queue&to=0s"))["series"] == [], "`to` is half-open"
    found = await stats(client, "metrics=queued&metrics=oldestAge&metrics=slots&metrics=busy&by=queue")
    last = {(one["metric"], one["labels"]["queue"]): values(one)[-1] for one in found["series"]}
    assert (last["queued", "default"], last["queued", "slow"]) == (2, 1)
    assert (last["busy", "default"], last["slots", "default"] > 0) == (0, True)
    assert last["oldestAge", "slow"] == 60.0
    refused = await client.get("/stats?metrics=queued&by=job")
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (400, "by")


async def test_the_smallest_groups_are_summed_as_other(client: httpx.AsyncClient, world: World) -> None:
    for number in range(60):
        world.enqueue(queue=f"q{number}")
    world.enqueue(queue="q59")
    found = (await stats(client, "metrics=created&by=queue"))["series"]
    assert len(found) == 50
    assert {"queue": "q59"} in [one["labels"] for one in found]
    assert found[-1]["labels"] == {"queue": "other"}
    assert sum(sum(values(one)) for one in found) == 61
    three = (await stats(client, "metrics=created&metrics=success&metrics=startLatency.p50&by=queue"))["series"]
    assert len(three) == 48


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "metrics"),
        ("metrics=sucess", "metrics"),
        ("metrics=success&by=worker", "by"),
        ("metrics=success&step=30", "step"),
        ("metrics=success&step=90s", "step"),
        ("metrics=success&step=1.5", "step"),
        ("metrics=success&step=-60", "step"),
        ("metrics=success&from=3d&step=60", "step"),
        ("metrics=success&from=47h&step=60", "step"),
        ("metrics=success&from=1h&to=2h", "to"),
        ("metrics=success&from=yesterday", "from"),
        ("metrics=success&metric=failed", "metric"),
    ],
)
async def test_case_7_parameters_that_are_refused(client: httpx.AsyncClient, query: str, parameter: str) -> None:
    answer = await client.get(f"/stats?{query}")
    assert (answer.status_code, code(answer)[-9:]) == (400, "parameter")
    assert answer.json()["errors"][0]["parameter"] == parameter


async def test_long_windows_have_few_points(client: httpx.AsyncClient, world: World) -> None:
    world.enqueue()
    for query in ("from=400d", "from=48h", "from=1m", "from=90d&step=1d", "from=0001-01-01T00:00:00Z"):
        found = await stats(client, f"metrics=created&{query}&to={rfc3339(world.clock.now() + MINUTE)}")
        assert sum(values(found["series"][0])) == 1
        assert len(found["series"][0]["points"]) <= 2000


async def test_case_25_namespaces_do_not_mix(server: Server, world: World) -> None:
    world.register("send", namespace="other")
    world.enqueue(namespace="other", queue="secret")
    world.enqueue()
    here, there = server.token(Role.VIEWER), server.token(Role.VIEWER, namespaces=("other",))
    for _ in range(2):
        async with server.client(here) as mine, server.client(there) as theirs:
            (one,) = (await stats(mine, "metrics=created&by=queue"))["series"]
            assert (one["labels"], sum(values(one))) == ({"queue": "default"}, 1)
            (one,) = (await stats(theirs, "metrics=created&by=queue"))["series"]
            assert (one["labels"], sum(values(one))) == ({"queue": "secret"}, 1)
        fold_all(world.store)
        server.store.transact(statistics.write_samples, server.store.read(statistics.observe))


async def test_a_report_cannot_count_in_another_lane(client: httpx.AsyncClient, world: World) -> None:
    """A worker reports the lane of what it has finished. Only the true one is counted."""
    world.register("mine")
    world.register("theirs", namespace="b")
    foreign = world.store.read(lambda view: view.rows("stat_lanes", namespace="b"))[0][0]
    worker = world.join(lease_s=10_000, jobs=["mine"])
    for outcome in (Succeeded("1"), Failed(payload.error("E", "no"), permanent=True)):
        world.enqueue_many(2, "mine")
        attempts = world.claim(worker, jobs=["mine"])
        reports = [finish.timed(Finished(one.id, one.fence, outcome), one) for one in attempts]
        forged = [msgspec.structs.replace(one, lane=foreign) for one in reports]
        assert world.store.transact(finish.finish, [forged[0], reports[1]]) == []
    world.clock.advance(60)
    for metric in ("success", "failed"):
        found = await stats(client, f"metrics={metric}&from=10m&by=job")
        assert [(one["labels"], sum(values(one))) for one in found["series"]] == [({"job": "mine"}, 2)]
    assert world.store.read(lambda view: view.rows("feed_outcomes", namespaces=["b"], since=0, most=100)) == []


async def test_counts_are_limited_to_jobs_queues_and_apps(
    client: httpx.AsyncClient, server: Server, world: World
) -> None:
    world.enqueue_many(3, "send")
    world.enqueue_many(2, "count", queue="slow")
    for _ in range(2):
        for query, count in (("job=send", 3), ("queue=slow", 2), ("app=shop&job=count", 2), ("job=none", 0)):
            found = (await stats(client, f"metrics=created&metrics=runTime.p50&{query}"))["series"]
            assert sum(values(found[0])) == count, query
        fold_all(world.store)
    world.clock.advance(60)
    server.store.transact(statistics.write_samples, server.store.read(statistics.observe))
    (one,) = (await stats(client, "metrics=queued&queue=slow"))["series"]
    assert (one["labels"], values(one)[-1]) == ({}, 2)
    for query in ("metrics=queued&job=send", "metrics=queued&queue=slow&by=pool"):
        assert (await client.get(f"/stats?{query}")).status_code == 400


async def test_usual_values_are_the_median_of_the_same_hour_of_the_last_weeks(
    client: httpx.AsyncClient, world: World
) -> None:
    week = 7 * 24 * 3600
    for count in (60, 120, 600):
        world.enqueue_many(count)
        fold_all(world.store)
        world.clock.advance(week)
    world.enqueue_many(6)
    found = await stats(client, "metrics=created&metrics=runTime.p50&from=1m&step=60&usual=true")
    created, times = found["series"]
    assert (created["usual"][-1], times["usual"][-1]) == (2.0, None)
    hours = await stats(client, "metrics=created&from=1h&step=1h&usual=true")
    assert hours["series"][0]["usual"] == [0.0, 120.0]
    assert (await stats(client, "metrics=created"))["series"][0]["usual"] is None
    world.clock.advance(2 * week)
    few = await stats(client, "metrics=created&from=1m&step=60&usual=true&job=send")
    assert few["series"][0]["usual"][-1] is not None
    world.clock.advance(2 * week)
    none = await stats(client, "metrics=created&from=1m&step=60&usual=true")
    assert none["series"][0]["usual"][-1] is None
