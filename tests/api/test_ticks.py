"""The ledger of a schedule over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

from rota.domain.instant import MICROSECONDS
from rota.domain.tick_policy import LedgerEntry, TickOutcome
from rota.ops import schedule as ops
from tests.api.defining import job
from tests.api.server import Server, code

BEGUN = 1_900_000_000 * MICROSECONDS
"""17 March 2030, 17:46:40 UTC."""
MINUTE = 60 * MICROSECONDS


async def filled(server: Server, client: httpx.AsyncClient) -> str:
    """A schedule with ticks at the minutes 0 to 9, a range of five from minute 20 to 24, and one tick at 30."""
    job(server)
    made = await client.post("/schedules", json={"job": "report", "name": "s", "every": 60})
    id = made.json()["scheduleId"]
    marks = [
        LedgerEntry(BEGUN + n * MINUTE, BEGUN + n * MINUTE, 1, TickOutcome.MISSED if n % 2 else TickOutcome.OVERLAP)
        for n in range(10)
    ]
    marks.append(LedgerEntry(BEGUN + 20 * MINUTE, BEGUN + 24 * MINUTE, 5, TickOutcome.PAUSED))
    marks.append(LedgerEntry(BEGUN + 30 * MINUTE, BEGUN + 30 * MINUTE, 1, TickOutcome.MISSED))
    server.store.transact(ops.record, [(int(id), mark) for mark in marks])
    return str(id)


async def pages(client: httpx.AsyncClient, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = (await client.get(f"/schedules/s/ticks?{query}{cursor}")).json()
        found.append(page)
        if page["nextCursor"] is None:
            return found
        cursor = f"&cursor={page['nextCursor']}"


async def times(client: httpx.AsyncClient, query: str) -> list[str]:
    return [one["at"][11:16] for page in await pages(client, query) for one in page["items"]]


DOWN = ["18:16", "18:06", "17:55", "17:54", "17:53", "17:52", "17:51", "17:50", "17:49", "17:48", "17:47", "17:46"]


async def test_ranges_are_one_item_and_the_summary_counts_ticks(server: Server, client: httpx.AsyncClient) -> None:
    id = await filled(server, client)
    page = (await client.get(f"/schedules/{id}/ticks")).json()
    assert [one["at"][11:16] for one in page["items"]] == DOWN
    one = page["items"][1]
    assert (one["count"], one["outcome"], one["until"]) == (5, "paused", "2030-03-17T18:10:40Z")
    assert (one["executionId"], one["scheduleId"]) == (None, id)
    assert page["summary"] == {"outcomes": {"missed": 6, "overlap": 5, "paused": 5}, "isCapped": False}
    assert page["nextCursor"] is None


async def test_pages_in_both_directions(server: Server, client: httpx.AsyncClient) -> None:
    await filled(server, client)
    assert await times(client, "limit=5") == DOWN
    assert await times(client, "limit=1") == DOWN
    assert await times(client, "limit=5&order=asc") == DOWN[::-1]
    first, second, third = await pages(client, "limit=5")
    back = (await client.get(f"/schedules/s/ticks?limit=5&cursor={third['previousCursor']}")).json()
    assert back["items"] == second["items"]
    back = (await client.get(f"/schedules/s/ticks?limit=5&cursor={back['previousCursor']}")).json()
    assert (back["items"], back["previousCursor"]) == (first["items"], None)
    assert first["summary"] == third["summary"]


async def test_from_and_to_are_half_open_and_a_range_that_began_earlier_is_there(
    server: Server, client: httpx.AsyncClient
) -> None:
    await filled(server, client)
    between = "from=2030-03-17T17:48:40Z&to=2030-03-17T17:51:40Z"
    assert await times(client, between) == ["17:50", "17:49", "17:48"]
    inside = "from=2030-03-17T18:08:00Z&to=2030-03-17T18:30:00Z"
    assert await times(client, inside) == ["18:16", "18:06"]
    assert await times(client, f"{inside}&limit=1") == ["18:16", "18:06"]
    assert await times(client, f"{inside}&limit=1&order=asc") == ["18:06", "18:16"]
    (page,) = await pages(client, inside)
    assert page["summary"]["outcomes"] == {"missed": 1, "paused": 5}
    assert await times(client, "to=1h") == []
    for wrong in ("from=yesterday", "from=2030-03-17T17:48:40", "to=2030-03-17T17:48:40+02:00", "outcome=lost"):
        assert (await client.get(f"/schedules/s/ticks?{wrong}")).status_code == 400


async def test_outcomes_are_a_filter(server: Server, client: httpx.AsyncClient) -> None:
    await filled(server, client)
    assert await times(client, "outcome=paused") == ["18:06"]
    assert await times(client, "outcome=paused&outcome=missed&limit=2") == [DOWN[0], DOWN[1], *DOWN[2::2]]
    (page,) = await pages(client, "outcome=fired")
    assert page["items"] == []
    assert page["summary"]["outcomes"]["paused"] == 5


async def test_the_ledger_of_a_removed_schedule_stays_and_is_shared(server: Server, client: httpx.AsyncClient) -> None:
    old = await filled(server, client)
    assert (await client.delete("/schedules/s")).status_code == 204
    for thing in ("s", old):
        assert len((await client.get(f"/schedules/{thing}/ticks")).json()["items"]) == 12
    made = await client.post("/schedules", json={"job": "report", "name": "s", "every": 60})
    new = int(made.json()["scheduleId"])
    marks = [LedgerEntry(BEGUN + n * MINUTE, BEGUN + n * MINUTE, 1, TickOutcome.MISSED) for n in (0, 5)]
    server.store.transact(ops.record, [(new, mark) for mark in marks])
    for limit in (1, 2, 3, 50):
        seen = [
            (one["at"], one["scheduleId"]) for page in await pages(client, f"limit={limit}") for one in page["items"]
        ]
        assert len(seen) == len(set(seen)) == 14
        assert seen == sorted(seen, key=lambda one: (one[0], int(one[1])), reverse=True)


async def test_case_9_cursors_of_other_lists(server: Server, client: httpx.AsyncClient) -> None:
    await filled(server, client)
    cursor = (await client.get("/schedules/s/ticks?limit=1")).json()["nextCursor"]
    for path in (f"/schedules/s/ticks?order=asc&cursor={cursor}", f"/schedules?cursor={cursor}"):
        answer = await client.get(path)
        assert (answer.status_code, code(answer)) == (400, "bad_cursor")
    assert (await client.get("/schedules/gone/ticks")).status_code == 404
