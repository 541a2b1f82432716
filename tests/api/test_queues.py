"""Queues over HTTP."""

from __future__ import annotations

import asyncio

import httpx

from rota.domain.job import Queue
from rota.ops import define
from tests.api.defining import job
from tests.api.server import Server, code


async def test_a_queue_is_made_changed_and_read(client: httpx.AsyncClient) -> None:
    made = await client.put("/queues/mail", json={"policy": "fifo", "maxDepth": 10})
    assert (made.status_code, made.headers["location"], made.headers["etag"]) == (201, "/api/v1/queues/mail", '"r1"')
    body = made.json()
    assert body["definition"] == {"policy": "fifo", "maxDepth": 10}
    counts = ("queued", "scheduled", "running", "waiting", "dead", "oldestAt", "paused")
    assert [body[name] for name in counts] == [0, 0, 0, 0, 0, None, None]
    same = await client.put("/queues/mail", json=body["definition"])
    assert (same.status_code, same.headers["etag"], same.json()) == (200, '"r1"', body)
    patched = await client.patch("/queues/mail", json={"maxDepth": None})
    assert patched.json()["definition"] == {"policy": "fifo", "maxDepth": None}
    patched = await client.patch("/queues/mail", json={"policy": None})
    assert (patched.json()["definition"]["policy"], patched.headers["etag"]) == ("priority", '"r3"')
    replaced = await client.put("/queues/mail", json={})
    assert (replaced.status_code, replaced.headers["etag"]) == (200, '"r3"')
    assert (await client.get("/queues")).json()["items"] == [
        {name: value for name, value in patched.json().items() if name != "definition"}
    ]
    trail = (await client.get("/audit?action=queue")).json()["items"]
    assert [one["action"] for one in trail] == ["queue.put"] * 3
    assert trail[-1]["after"] == {"policy": "fifo", "maxDepth": 10}


async def test_wrong_bodies_and_names(client: httpx.AsyncClient) -> None:
    for body, problem in [
        ({"policy": "lifo"}, "bad_field"),
        ({"maxDepth": 0}, "bad_field"),
        ({"maxDepth": "10"}, "bad_field"),
        ({"maxDepth": 1.5}, "bad_field"),
        ({"maxDepth": 10**30}, "bad_field"),
        ({"maxdepth": 10}, "unknown_field"),
        ({"namespace": "x"}, "unknown_field"),
        ({"paused": None}, "unknown_field"),
    ]:
        for answer in (await client.put("/queues/mail", json=body), await client.patch("/queues/mail", json=body)):
            assert (answer.status_code, code(answer)) == (422, problem), body
    for name in ("1st", "a~b", "x" * 129):
        assert (await client.put(f"/queues/{name}", json={})).status_code == 400
    missing = await client.patch("/queues/gone", json={"maxDepth": 1})
    assert (missing.status_code, code(missing)) == (404, "not_found")
    assert (await client.get("/queues/gone")).status_code == 404
    assert (await client.delete("/queues/gone")).status_code == 405


async def test_pause_and_resume_are_idempotent_and_count_as_revisions(client: httpx.AsyncClient) -> None:
    await client.put("/queues/mail", json={})
    seen = []
    for action in ("pause", "pause", "resume", "resume"):
        answer = await client.post(f"/queues/mail/{action}", json={"note": "why"} if action == "pause" else None)
        body = answer.json()
        seen.append((body["changed"], body["paused"] is not None, answer.headers["etag"]))
    assert seen == [(True, True, '"r2"'), (False, True, '"r2"'), (True, False, '"r3"'), (False, False, '"r3"')]
    for action in ("pause", "resume"):
        missing = await client.post(f"/queues/gone/{action}")
        assert (missing.status_code, code(missing)) == (404, "not_found")


async def test_a_deploy_that_changes_nothing_is_no_revision(server: Server, client: httpx.AsyncClient) -> None:
    await client.put("/queues/mail", json={"maxDepth": 5})
    for _ in range(2):
        server.store.transact(define.set_queues, "default", [Queue(name="mail", max_depth=5)])
    assert (await client.get("/queues/mail")).headers["etag"] == '"r1"'
    server.store.transact(define.set_queues, "default", [Queue(name="mail")])
    assert (await client.get("/queues/mail")).headers["etag"] == '"r2"'


async def test_case_14_conditions_of_put_and_patch(client: httpx.AsyncClient) -> None:
    only_new = {"If-None-Match": "*"}
    assert (await client.put("/queues/mail", json={}, headers={"If-Match": '"r1"'})).status_code == 412
    assert (await client.put("/queues/mail", json={}, headers=only_new)).status_code == 201
    refused = await client.put("/queues/mail", json={"maxDepth": 5}, headers=only_new)
    assert (refused.status_code, code(refused), refused.headers["etag"]) == (412, "precondition_failed", '"r1"')
    tag = {"If-Match": '"r1"'}
    answers = await asyncio.gather(
        *(client.patch("/queues/mail", json={"maxDepth": n}, headers=tag) for n in (1, 2)),
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    assert (await client.patch("/queues/mail", json={"maxDepth": 3})).status_code == 200


async def test_case_15_a_put_by_ten_at_once(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(client.put("/queues/mail", json={"maxDepth": 5}) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
    assert (await client.get("/queues/mail")).headers["etag"] == '"r1"'


async def test_case_28_queues_of_another_tenant(server: Server, client: httpx.AsyncClient) -> None:
    await client.put("/queues/mail", json={"maxDepth": 5})
    async with server.client(server.token(namespaces=("b",))) as stranger:
        assert (await stranger.get("/queues")).json()["items"] == []
        for method, path in (("GET", ""), ("PATCH", ""), ("POST", "/pause"), ("POST", "/resume")):
            content = {"policy": "fifo"} if method == "PATCH" else None
            assert (await stranger.request(method, f"/queues/mail{path}", json=content)).status_code == 404
        assert (await stranger.put("/queues/mail", json={})).status_code == 201
    async with server.client(server.token()) as owner:
        assert (await owner.get("/queues/mail")).json()["maxDepth"] == 5


async def test_lists_have_pages(server: Server, client: httpx.AsyncClient) -> None:
    for name in ("b", "A", "a", "c"):
        await client.put(f"/queues/{name}", json={})
    first = (await client.get("/queues?limit=3")).json()
    assert [one["name"] for one in first["items"]] == ["A", "a", "b"]
    second = (await client.get(f"/queues?limit=3&cursor={first['nextCursor']}")).json()
    assert [one["name"] for one in second["items"]] == ["c"]
    assert second["nextCursor"] is None
    down = (await client.get("/queues?order=desc&fields=name")).json()["items"]
    assert down == [{"name": name} for name in ("c", "b", "a", "A")]


async def test_a_dry_run_changes_nothing(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    answer = await client.put("/queues/mail?dryRun=true", json={"maxDepth": 3})
    assert (answer.status_code, answer.json()["would"]["maxDepth"]) == (200, 3)
    assert (await client.get("/queues/mail")).status_code == 404
    paused = await client.post("/queues/default/pause?dryRun=true")
    assert paused.json()["would"]["paused"] is not None
    assert (await client.get("/queues/default")).json()["paused"] is None
