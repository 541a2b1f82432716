"""GET /ticks over all schedules, and the days of one."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rota.domain.instant import rfc3339
from rota.domain.schedule import Spec
from rota.domain.trigger import Cron, Every
from rota.ops import calendars, firing, schedule
from rota.ops.upkeep import ALL_SHARDS
from rota.views import tick_range
from tests.api.server import code
from tests.support.world import FAILED, World

pytestmark = pytest.mark.usefixtures("clock")

MINUTE = 60 * 10**6
HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE


def put(world: World, name: str, spec: Spec) -> None:
    world.store.transact(schedule.put, "default", "shop", name, spec, "test")


def fire(world: World, seconds: float, *, fails: bool = False) -> None:
    """Moves the clock, fires what is due, and ends it."""
    world.clock.advance(seconds)
    world.store.transact(firing.fire, ALL_SHARDS, world.ids.many)
    worker = world.join(lease_s=60)
    for attempt in world.claim(worker):
        world.finish(attempt, FAILED) if fails else world.finish(attempt)


async def get(client: httpx.AsyncClient, path: str) -> Any:
    return (await client.get(path)).raise_for_status().json()


async def test_case_past_and_planned_ticks_of_all_schedules(client: httpx.AsyncClient, world: World) -> None:
    put(world, "often", Spec(job="send", trigger=Every(period=15 * MINUTE)))
    put(world, "daily", Spec(job="count", trigger=Cron("0 6 * * *")))
    put(world, "held", Spec(job="count", trigger=Cron("0 7 * * *")))
    world.store.transact(schedule.pause, "default", "shop", "held", "ops", "")
    fire(world, 900)
    fire(world, 900, fails=True)
    start = world.clock.now() - 30 * MINUTE
    found = await get(client, "/ticks")
    assert (found["from"], found["to"]) == (rfc3339(start), rfc3339(start + DAY))
    assert [(one["schedule"], one["outcome"], one["status"]) for one in found["items"][:3]] == [
        ("often", "fired", "success"),
        ("often", "fired", "failed"),
        ("often", "planned", None),
    ]
    assert {one["schedule"] for one in found["items"]} == {"often", "daily"}
    assert (found["items"][0]["isPlanned"], found["items"][2]["isPlanned"]) == (False, True)
    counts = [one["count"] for one in found["quarters"]]
    assert (len(counts), counts[:3], counts[24], sum(counts)) == (96, [0, 1, 1], 2, 96)
    only = await get(client, "/ticks?schedule=daily")
    assert [one["at"] for one in only["items"]] == [rfc3339(start + 6 * HOUR)]
    assert len((await get(client, "/ticks?limit=2"))["items"]) == 2


async def test_case_dense_schedules_are_counted_and_not_listed_whole(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick_range, "MOST_PLANNED", 30)
    put(world, "dense", Spec(job="send", trigger=Every(period=MINUTE)))
    found = await get(client, "/ticks")
    assert (len(found["items"]), found["isCapped"], len(found["dense"])) == (30, True, 1)
    assert [one["count"] for one in found["quarters"]] == [15] * 96


async def test_case_neighbours_with_one_outcome_are_merged(client: httpx.AsyncClient, world: World) -> None:
    put(world, "often", Spec(job="send", trigger=Every(period=15 * MINUTE)))
    put(world, "daily", Spec(job="count", trigger=Cron("0 6 * * *")))
    start = world.clock.now()
    for fails in (False, False, True):
        fire(world, 900, fails=fails)
    found = (await get(client, "/ticks?merge=80"))["items"]
    assert [(one["schedule"], one["count"], one["status"]) for one in found] == [
        ("often", 2, "success"),
        ("often", 1, "failed"),
        ("often", 92, None),
        ("daily", 1, None),
    ]
    assert (found[2]["at"], found[2]["until"]) == (rfc3339(start + HOUR), rfc3339(start + DAY - 15 * MINUTE))
    assert [one["executionId"] is None for one in found] == [True, False, True, True]
    assert len((await get(client, "/ticks?merge=100"))["items"]) == 96


async def test_case_what_lint_finds(client: httpx.AsyncClient, world: World) -> None:
    for number in range(10):
        put(world, f"nightly{number}", Spec(job="send", trigger=Cron("0 2 * * *")))
    found = await get(client, "/lint")
    assert (found["schedules"], [one["kind"] for one in found["findings"]]) == (10, ["herd"])
    assert found["findings"][0]["schedules"][0] == "shop.nightly0"
    assert (await get(client, "/lint?app=other"))["findings"] == []


async def test_case_excluded_days_have_no_planned_ticks(client: httpx.AsyncClient, world: World) -> None:
    day = rfc3339(world.clock.now() + DAY)[:10]
    world.store.transact(calendars.put, "default", "closed", [day], "test")
    put(world, "daily", Spec(job="count", trigger=Cron("0 6 * * *"), calendars=("closed",)))
    start = world.clock.now()
    found = await get(client, f"/ticks?from={rfc3339(start)}&to={rfc3339(start + 3 * DAY)}")
    assert [one["at"] for one in found["items"]] == [rfc3339(start + 6 * HOUR), rfc3339(start + 2 * DAY + 6 * HOUR)]
    for query in ("from=2026-01-01T00:00:00Z&to=2026-01-20T00:00:00Z", "from=1h&to=2h"):
        refused = await client.get(f"/ticks?{query}")
        assert (refused.status_code, code(refused)) == (400, "bad_parameter")


async def test_case_the_worst_outcome_of_each_day(client: httpx.AsyncClient, world: World) -> None:
    put(world, "twice", Spec(job="send", trigger=Every(period=12 * HOUR)))
    fire(world, 12 * 3600)
    fire(world, 12 * 3600)
    fire(world, 12 * 3600, fails=True)
    fire(world, 36 * 3600)
    found = await get(client, "/schedules/twice/days")
    assert (found["tz"], found["complete"], found["incomplete"]) == ("UTC", 2, 2)
    assert [one["worst"] for one in found["items"]] == ["success", "failed", "missed", "success"]
    assert found["items"][0]["outcomes"] == {"fired": 1}
    assert (await client.get("/schedules/nosuch/days")).status_code == 404
