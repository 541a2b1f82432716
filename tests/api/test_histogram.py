"""GET /histogram: executions over time by state."""

from __future__ import annotations

import httpx
import pytest

from tests.api.server import code
from tests.support.statistics import fold_all
from tests.support.world import World

pytestmark = pytest.mark.usefixtures("clock")


async def bars(client: httpx.AsyncClient, query: str) -> tuple[str, list[dict[str, int]]]:
    found = (await client.get(f"/histogram?{query}")).raise_for_status().json()
    assert found["isCapped"] is False
    return found["of"], [one["states"] for one in found["bars"]]


async def test_case_states_over_time_from_statistics_or_counted(client: httpx.AsyncClient, world: World) -> None:
    world.fail(2)
    world.clock.advance(60)
    worker = world.join(lease_s=3600)
    world.enqueue_many(3, "count", tags='["eu"]')
    for attempt in world.claim(worker, 2):
        world.finish(attempt)
    for _ in range(2):
        assert await bars(client, "from=1m&step=60") == ("ended", [{"failed": 2}, {"success": 2}])
        assert await bars(client, "from=1m&step=60&job=count") == ("ended", [{}, {"success": 2}])
        fold_all(world.store)
    assert await bars(client, "from=1m&step=60&status=failed") == ("created", [{"failed": 2}, {}])
    assert await bars(client, "from=1m&step=60&tag=eu") == ("created", [{}, {"success": 2, "queued": 1}])
    assert await bars(client, "from=1m&step=60&tag=eu&status=queued") == ("created", [{}, {"queued": 1}])


async def test_case_parameters_that_are_refused(client: httpx.AsyncClient) -> None:
    for query in ("createdFrom=1h", "step=30", "from=1h&to=2h", "staus=failed"):
        answer = await client.get(f"/histogram?{query}")
        assert (answer.status_code, code(answer)[-9:]) == (400, "parameter"), query
