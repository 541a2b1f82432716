"""Workers, breakers and the load over HTTP."""

from __future__ import annotations

import httpx

from rota.domain.breaker import Breaker
from rota.domain.requirement import Needs, Offers
from rota.ops import breakers, fleet
from rota.views import why as whys
from tests.api.defining import job, worker
from tests.api.server import Server, code


async def test_workers_are_listed_newest_first_and_stopped_ones_on_request(
    server: Server, client: httpx.AsyncClient
) -> None:
    ids = [str(worker(server, "report", name=f"w{n}", queues=["mail"] if n == 1 else None)) for n in range(3)]
    server.store.transact(fleet.leave, int(ids[0]))
    found = (await client.get("/workers")).json()["items"]
    assert [one["workerId"] for one in found] == [ids[2], ids[1]]
    one = found[0]
    assert (one["state"], one["slots"], one["busy"], one["queues"], one["trouble"]) == ("live", 4, 0, None, None)
    assert one["leaseUntil"].endswith("Z")
    everyone = (await client.get("/workers?since=1h&order=asc")).json()["items"]
    assert [one["workerId"] for one in everyone] == ids
    assert [one["workerId"] for one in (await client.get("/workers?queue=other")).json()["items"]] == [ids[2]]
    assert (await client.get("/workers?app=gone")).json()["items"] == []
    assert (await client.get("/workers?state=draining")).json()["items"] == []
    page = (await client.get("/workers?limit=1")).json()
    rest = (await client.get(f"/workers?limit=1&cursor={page['nextCursor']}")).json()
    assert ([one["workerId"] for one in rest["items"]], rest["nextCursor"]) == ([ids[1]], None)
    stopped = (await client.get(f"/workers/{ids[0]}")).json()
    assert (stopped["state"], stopped["stoppedAt"] is not None) == ("stopped", True)
    assert (await client.get("/workers/w1")).json()["workerId"] == ids[1]


async def test_a_worker_is_drained_once(server: Server, client: httpx.AsyncClient) -> None:
    id = worker(server, "report", offers=Offers(tags=["gpu"]))
    dry = (await client.post(f"/workers/{id}/drain?dryRun=true")).json()
    assert dry["would"]["changed"]
    assert (await client.get(f"/workers/{id}")).json()["state"] == "live"
    first = (await client.post(f"/workers/{id}/drain")).json()
    assert (first["changed"], first["state"], first["offers"]["tags"]) == (True, "draining", ["gpu"])
    assert [one["state"] for one in (await client.get("/workers?state=draining")).json()["items"]] == ["draining"]
    assert (await client.post(f"/workers/{id}/drain")).json()["changed"] is False
    server.store.transact(fleet.leave, id)
    gone = (await client.post(f"/workers/{id}/drain")).json()
    assert (gone["changed"], gone["state"]) == (False, "stopped")
    for thing in ("999", "nobody", "01", "9" * 30):
        missing = await client.post(f"/workers/{thing}/drain")
        assert (missing.status_code, code(missing)) == (404, "not_found")


async def test_a_name_that_several_workers_have(server: Server, client: httpx.AsyncClient) -> None:
    shop, mail = worker(server, "report"), worker(server, "report", app="mail")
    answer = await client.post("/workers/w/drain")
    assert (answer.status_code, code(answer)) == (409, "ambiguous_name")
    assert answer.json()["existing"] == [{"id": str(shop), "app": "shop"}, {"id": str(mail), "app": "mail"}]
    assert (await client.post("/workers/w/drain?app=mail")).json()["workerId"] == str(mail)


async def test_case_28_workers_and_breakers_of_another_tenant(server: Server, client: httpx.AsyncClient) -> None:
    id = worker(server, "report")
    job(server, needs=Needs(breakers=["pay"]))
    async with server.client(server.token(namespaces=("b",))) as stranger:
        for path in ("/workers?since=1h", "/breakers"):
            assert (await stranger.get(path)).json()["items"] == []
        assert (await stranger.get("/load")).json()["groups"] == []
        for path in (f"/workers/{id}", "/workers/w", "/breakers/pay"):
            assert (await stranger.get(path)).status_code == 404
        for path in (f"/workers/{id}/drain", "/workers/w/drain", "/breakers/pay/open", "/breakers/pay/close"):
            assert (await stranger.post(path)).status_code == 404
    async with server.client(server.token()) as owner:
        assert (await owner.get(f"/workers/{id}")).json()["state"] == "live"
        assert (await owner.get("/breakers/pay")).json()["state"] == "closed"


async def test_breakers_are_opened_and_closed_by_hand(server: Server, client: httpx.AsyncClient) -> None:
    job(server, needs=Needs(breakers=["pay"]))
    await client.post("/schedules", json={"job": "report", "every": 60})
    (known,) = (await client.get("/breakers")).json()["items"]
    closed = {"name": "pay", "state": "closed", "failures": 0, "openedAt": None, "nextTryAt": None}
    assert known == closed
    assert (await client.post("/breakers/pay/close")).json() == {**closed, "changed": False}
    opened = (await client.post("/breakers/pay/open")).json()
    assert (opened["state"], opened["changed"], opened["nextTryAt"]) == ("open", True, None)
    assert (await client.post("/breakers/pay/open")).json()["changed"] is False
    id = (await client.post("/schedules/report/trigger")).json()["executionId"]
    why = server.store.read(whys.why, "default", id)
    assert why is not None
    assert "opened by an operator" in str(why)
    assert not server.store.transact(breakers.probe, "default", ["pay"])
    server.store.transact(breakers.count, [(id, (Breaker("pay"),), True)])
    assert (await client.get("/breakers/pay")).json()["state"] == "open"
    assert (await client.post("/breakers/pay/close?dryRun=true")).json()["would"]["state"] == "closed"
    assert (await client.post("/breakers/pay/close")).json() == {**closed, "changed": True}
    trail = (await client.get("/audit?action=breaker&order=asc")).json()["items"]
    assert [(one["action"], one["actor"]) for one in trail] == [("breaker.open", "local"), ("breaker.close", "local")]
    for path in ("/breakers/gone/open", "/breakers/gone/close"):
        assert (await client.post(path)).status_code == 404


async def test_a_breaker_that_opened_by_itself(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    await client.post("/schedules", json={"job": "report", "every": 60})
    id = (await client.post("/schedules/report/trigger")).json()["executionId"]
    policy = (Breaker("pay", failures=1),)
    server.store.transact(breakers.count, [(id, policy, False)])
    seen = (await client.get("/breakers/pay")).json()
    assert (seen["state"], seen["failures"], seen["nextTryAt"] is not None) == ("open", 1, True)
    by_hand = (await client.post("/breakers/pay/open")).json()
    assert (by_hand["changed"], by_hand["openedAt"], by_hand["nextTryAt"]) == (True, seen["openedAt"], None)


async def test_the_load_is_that_of_the_command(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    worker(server, "report")
    await client.post("/schedules", json={"job": "report", "every": 60})
    await client.post("/schedules/report/trigger")
    found = (await client.get("/load?target=30&slots=2")).json()
    assert (found["targetS"], found["slotsOfAWorker"], found["total"]["ready"]) == (30.0, 2, 1)
    (group,) = found["groups"]
    assert (group["app"], group["queue"], group["pool"], group["freeSlots"]) == ("shop", "default", "default", 4)
    assert (await client.get("/load?app=gone")).json()["groups"] == []
    assert (await client.get("/load?target=1m30s")).json()["targetS"] == 90
    for wrong in ("target=0", "target=soon", "target=-1", "target=1e999", "slots=0", "slots=x", "pol=a"):
        assert (await client.get(f"/load?{wrong}")).status_code == 400, wrong


async def test_slots_of_a_worker_that_can_start_no_process_are_not_counted(
    server: Server, client: httpx.AsyncClient
) -> None:
    job(server, needs=Needs(isolated=True))
    id = worker(server, "report")
    await client.post("/schedules", json={"job": "report", "every": 60})
    await client.post("/schedules/report/trigger")
    assert [one["slots"] for one in (await client.get("/load")).json()["groups"]] == [4]
    server.store.transact(fleet.tell_trouble, id, {"commands": "No space left on device"})
    assert [one["slots"] for one in (await client.get("/load")).json()["groups"]] == [4]
    server.store.transact(fleet.tell_trouble, id, {"isolated jobs": "No space left on device"})
    found = (await client.get("/load")).json()
    assert [(one["slots"], one["freeSlots"]) for one in found["groups"]] == [(0, 0)]


async def test_a_stopped_worker_keeps_its_last_trouble_and_who_asked_it_to_drain(
    server: Server, client: httpx.AsyncClient
) -> None:
    id = worker(server, "report")
    server.store.transact(fleet.tell_trouble, id, {"commands": "[Errno 28] No space left on device"})
    assert (await client.get(f"/workers/{id}")).json()["drainAskedBy"] is None
    draining = (await client.post(f"/workers/{id}/drain")).json()
    assert (draining["drainAskedBy"], draining["ended"]) == ("local", None)
    server.store.transact(fleet.leave, id)
    stopped = (await client.get(f"/workers/{id}")).json()
    assert (stopped["drainAskedBy"], stopped["ended"]["held"]) == ("local", 0)
    assert (stopped["state"], stopped["troubleText"]) == (
        "stopped",
        "can start no process for commands: [Errno 28] No space left on device",
    )
