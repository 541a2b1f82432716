"""Events over HTTP: one, many, keys, lists, replays. On both databases."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from rota.domain.access import Role
from tests.api.server import Server, code
from tests.events.scene import Scene, subscriber
from tests.support.tables import table
from tests.support.world import World


@pytest.fixture
def scene(server: Server) -> Scene:
    return Scene(World(server.store))


PAID = {"name": "order.paid", "subject": "A-17", "payload": {"total": 99.5}}


async def test_an_event_starts_its_subscribers(scene: Scene, client: httpx.AsyncClient) -> None:
    scene.deploy(subscriber("settle", "order.paid"))
    answer = await client.post("/events", json=PAID)
    assert (answer.status_code, answer.json()["created"]) == (201, True)
    id = answer.json()["eventId"]
    assert answer.headers["location"] == f"/api/v1/events/{id}"
    found = (await client.get(f"/events/{id}")).json()
    assert (found["name"], found["subject"], found["payload"], found["actor"]) == (
        "order.paid",
        "A-17",
        {"total": 99.5},
        "local",
    )
    (started,) = found["started"]
    assert (started["job"], started["status"], found["deliveries"]) == ("settle", "queued", 1)


async def test_a_key_names_the_fact(client: httpx.AsyncClient) -> None:
    keyed = {**PAID, "key": "A-17/paid"}
    first, second = [await client.post("/events", json=keyed) for _ in range(2)]
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == {"eventId": first.json()["eventId"], "created": False}
    other = await client.post("/events", json={**keyed, "payload": 1})
    assert (other.status_code, code(other)) == (409, "key_conflict")


async def test_an_array_is_accepted_as_a_whole(client: httpx.AsyncClient) -> None:
    answer = await client.post("/events", json=[{"name": f"e{n}", "payload": n} for n in range(1000)])
    assert answer.status_code == 201
    ids = [one["eventId"] for one in answer.json()["items"]]
    assert len(set(ids)) == 1000
    assert (await client.get(f"/events/{ids[412]}")).json()["payload"] == 412
    assert (await client.post("/events", json=[])).json() == {"items": []}


async def test_case_24_an_array_with_one_bad_event_or_too_many(client: httpx.AsyncClient) -> None:
    items: list[Any] = [{"name": "e"} for _ in range(1001)]
    many = await client.post("/events", json=items)
    assert (many.status_code, code(many)) == (413, "too_large")
    items[412] = {"name": "not a name", "payload": 1, "key": "", "extra": 1}
    items[413] = {"name": "e", "subject": 7}
    items[414] = {"name": "not a name"}
    bad = await client.post("/events", json=items[:1000])
    assert bad.status_code == 422
    pointers = [error["pointer"] for error in bad.json()["errors"]]
    assert pointers == ["/412/extra", "/413/subject", "/414/name"]
    assert (await client.get("/events")).json()["items"] == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": "a b"}, "/name"),
        ({"name": "e", "subject": ""}, "/subject"),
        ({"name": "e", "key": "x" * 600}, "/key"),
        ({"name": "e", "actor": "root"}, "/actor"),
        ({"name": "e", "namespace": "other"}, "/namespace"),
        ({"name": "e", "payload": "x" * (1024 * 1024 + 1)}, "/payload"),
        ("e", ""),
        (7, ""),
    ],
)
async def test_a_bad_event_is_refused_with_its_place(client: httpx.AsyncClient, body: Any, pointer: str) -> None:
    answer = await client.post("/events", json=body)
    assert answer.status_code == 422
    assert [error.get("pointer", "") for error in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize(
    "text",
    [
        b'{"name":"e","payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"name":"e","payload":' + b"9" * 5000 + b"}",
        b'{"name":"e","payload":1e100000}',
        b'{"name":"e","name":"f"}',
        b'{"name":"e","payload":{"a":1,"a":2}}',
        b'{"name":"e","payload":{"a":1,"\\u0061":2}}',
        b'{"name":"e","payload":"\\ud800"}',
        b'{"name":"e","payload":"\\u0000"}',
        b'{"name":"e","payload":NaN}',
        b'{"name":"e"} x',
        b'\xef\xbb\xbf{"name":"e"}',
        b'{"name":"\xff"}',
    ],
)
async def test_case_26_bad_json_of_events(client: httpx.AsyncClient, text: bytes) -> None:
    for body in (text, b"[" + text + b"]"):
        answer = await client.post("/events", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, code(answer)) == (400, "bad_json")
    assert (await client.get("/events")).json()["items"] == []


async def test_numbers_and_nulls_in_a_payload_are_kept(client: httpx.AsyncClient, server: Server) -> None:
    text = b'{"name":"e","payload":{"a":null,"b":1.10,"c":123456789012345678901234567890}}'
    answer = await client.post("/events", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201
    (row,) = table(server.store, "event")
    assert row["payload"] == '{"a":null,"b":1.10,"c":123456789012345678901234567890}'


async def test_case_16_one_idempotency_key_many_at_once(client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k"}
    for body in (PAID, [PAID, PAID]):
        answers = await asyncio.gather(*(client.post("/events", json=body, headers=key) for _ in range(8)))
        assert {answer.status_code for answer in answers} <= {201, 422}
        if body is PAID:
            assert len({answer.json()["eventId"] for answer in answers}) == 1
            continue
        # The array has the keys k/1 and k/2, so the key of the single event does not refuse it.
        found = {tuple(one["eventId"] for one in answer.json()["items"]) for answer in answers}
        assert len(found) == 1
    assert len((await client.get("/events")).json()["items"]) == 3


async def test_case_17_a_key_with_another_array(client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k"}
    first = (await client.post("/events", json=[PAID, PAID], headers=key)).json()["items"]
    longer = (await client.post("/events", json=[PAID, PAID, PAID], headers=key)).json()["items"]
    assert longer[:2] == first
    assert longer[2]["created"]
    other = await client.post("/events", json=[{"name": "e"}, PAID], headers=key)
    assert (other.status_code, code(other)) == (422, "key_reused")
    assert len((await client.get("/events")).json()["items"]) == 3


async def test_lists_of_events(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = (
        await client.post("/events", json=[{"name": "odd" if n % 2 else "even", "subject": f"s{n}"} for n in range(6)])
    ).json()["items"]
    ids = [one["eventId"] for one in made]
    first = (await client.get("/events?name=odd&limit=2")).json()
    assert [one["eventId"] for one in first["items"]] == [ids[5], ids[3]]
    second = (await client.get(f"/events?name=odd&limit=2&cursor={first['nextCursor']}")).json()
    assert [one["eventId"] for one in second["items"]] == [ids[1]]
    assert second["nextCursor"] is None
    back = (await client.get(f"/events?name=odd&limit=2&cursor={second['previousCursor']}")).json()
    assert [one["eventId"] for one in back["items"]] == [ids[5], ids[3]]
    rising = (await client.get("/events?order=asc&from=1h&fields=eventId")).json()["items"]
    assert rising == [{"eventId": id} for id in ids]
    assert (await client.get("/events?to=1h")).json()["items"] == []
    assert [one["subject"] for one in (await client.get("/events?subject=s4")).json()["items"]] == ["s4"]
    wrong = await client.get(f"/events?name=even&cursor={first['nextCursor']}")
    assert (wrong.status_code, code(wrong)) == (400, "bad_cursor")


async def test_case_11_a_page_ends_when_it_has_looked_at_enough(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.post("/events", json=[{"name": "e"} for _ in range(10)])
    monkeypatch.setattr("rota.api.resources.events.MOST_LOOKED_AT", 4)
    sizes: list[int] = []
    cursor = ""
    while True:
        page = (await client.get(f"/events?name=nothing{cursor}")).json()
        sizes.append(len(page["items"]))
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert sizes == [0, 0, 0]


async def test_a_replay_reaches_jobs_that_subscribed_later(scene: Scene, client: httpx.AsyncClient) -> None:
    id = (await client.post("/events", json=PAID)).json()["eventId"]
    scene.deploy(subscriber("settle", "order.paid"))
    first, second = [(await client.post(f"/events/{id}/replay")).json() for _ in range(2)]
    assert (first["deliveries"], first["changed"]) == (1, True)
    assert (second["deliveries"], second["changed"]) == (0, False)
    forced = await client.post(f"/events/{id}/replay", json={"force": True})
    assert (forced.status_code, forced.json()["replayOf"], forced.json()["deliveries"]) == (201, id, 1)
    assert forced.headers["location"].endswith(forced.json()["eventId"])
    assert [row["action"] for row in table(scene.store, "audit")][-3:] == [
        "event.replay",
        "event.replay",
        "event.repeat",
    ]


async def test_a_producer_emits_and_reads_nothing(server: Server) -> None:
    async with server.client(server.token(Role.PRODUCER, name="shop")) as client:
        made = await client.post("/events", json=PAID)
        assert made.status_code == 201
        for answer in (await client.get("/events"), await client.get(f"/events/{made.json()['eventId']}")):
            assert (answer.status_code, code(answer)) == (403, "wrong_scope")
    async with server.client(server.token(Role.VIEWER)) as viewer:
        assert (await viewer.post("/events", json=PAID)).status_code == 403
        assert (await viewer.get("/events")).json()["items"][0]["actor"] == "token:shop"


async def test_case_28_events_of_another_tenant_are_not_there(server: Server) -> None:
    async with server.client(server.token(namespaces=("other",))) as stranger, server.client(server.token()) as own:
        id = (await own.post("/events", json={**PAID, "key": "k"})).json()["eventId"]
        for answer in (await stranger.get(f"/events/{id}"), await stranger.post(f"/events/{id}/replay")):
            assert (answer.status_code, code(answer)) == (404, "not_found")
        assert (await stranger.post("/events/nonsense/replay")).status_code == 404
        assert (await stranger.get("/events")).json()["items"] == []
        assert (await stranger.post("/events", json={**PAID, "key": "k"})).json()["created"]


async def test_other_media_are_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/events", content=b"{}", headers={"Content-Type": "text/plain"})
    assert (answer.status_code, code(answer)) == (415, "unsupported_media_type")


# --- NDJSON ---------------------------------------------------------------------------------------


async def lines(client: httpx.AsyncClient, text: bytes, query: str = "", **headers: str) -> list[dict[str, Any]]:
    """The lines of the answer to a stream of events."""
    kind = {"Content-Type": "application/x-ndjson"}
    answer = await client.post(f"/events{query}", content=text, headers={**kind, **headers})
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_case_21_a_stream_of_events(client: httpx.AsyncClient, server: Server) -> None:
    good = b'{"name":"e","payload":1.10}'
    odd = [b'{"name":"a b"}', b'{"name":', good + b"\r", b"", b'{"name":"e","extra":1}', good]
    answer = await lines(client, b"\n".join([good] * 2500 + odd), "?answer=ids")
    refused = [one for line in answer for one in line.get("refused", ())]
    assert [(one["line"], one["problem"]["code"]) for one in refused] == [
        (2501, "bad_field"),
        (2502, "bad_json"),
        (2505, "unknown_field"),
    ]
    assert answer[-1] == {"done": {"accepted": 2502, "refused": 3}}
    ids = [id for line in answer for id in line.get("ids", ())]
    assert set(ids) == {str(row["id"]) for row in table(server.store, "event")}
    assert len(ids) == 2502


async def test_case_23_a_stream_that_is_sent_again_emits_what_is_missing(client: httpx.AsyncClient) -> None:
    texts = [b'{"name":"e","payload":%d}' % number for number in range(5)]
    key = {"Idempotency-Key": "k"}
    first = await lines(client, b"\n".join(texts[:3]), "?answer=ids", **key)
    again = await lines(client, b"\n".join(texts), "?answer=ids", **key)
    assert again[0]["ids"][:3] == first[0]["ids"]
    assert again[-1] == {"done": {"accepted": 5, "refused": 0}}
    assert len((await client.get("/events")).json()["items"]) == 5


async def test_a_line_whose_key_has_another_payload_is_refused_alone(client: httpx.AsyncClient) -> None:
    text = b'{"name":"e","key":"k","payload":1}\n{"name":"e","key":"k","payload":2}\n{"name":"f"}'
    answer = await lines(client, text)
    refused = [one for line in answer for one in line.get("refused", ())]
    assert [one["problem"]["code"] for one in refused] == ["key_conflict"]
    assert answer[-1] == {"done": {"accepted": 2, "refused": 1}}


async def test_ids_are_for_streams_only(client: httpx.AsyncClient) -> None:
    answer = await client.post("/events?answer=ids", json=PAID)
    assert (answer.status_code, code(answer)) == (400, "bad_parameter")


async def test_a_token_for_some_jobs_emits_no_events(server: Server) -> None:
    async with server.client(server.token(Role.PRODUCER, jobs=("mail",))) as client:
        answer = await client.post("/events", json={"name": "order.paid"})
        assert (answer.status_code, code(answer)) == (403, "wrong_scope")
