"""Hooks: inbound webhooks are checked, recognised when they are repeated, and become events. On both databases."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from typing import Any

import httpx
import pytest

from rota.domain.access import Role
from tests.api.server import Server, code
from tests.support.tables import table

BODY = b'{"action":"push","id":7}'
JSON = {"Content-Type": "application/json"}


async def made(client: httpx.AsyncClient, scheme: str = "standard", **more: Any) -> dict[str, Any]:
    answer = await client.post("/hooks", json={"name": "partner", "event": "partner.call", "scheme": scheme, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def signed(hook: dict[str, Any], body: bytes = BODY, *, id: str = "msg_1", age_s: float = 0) -> dict[str, str]:
    """The headers of Standard Webhooks."""
    at = str(int(time.time() - age_s))
    key = base64.b64decode(hook["secret"].removeprefix("whsec_"))
    digest = hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature, **JSON}


def sha256(hook: dict[str, Any], text: bytes = BODY) -> str:
    return hmac.new(hook["secret"].encode(), text, hashlib.sha256).hexdigest()


async def post(client: httpx.AsyncClient, hook: dict[str, Any], body: bytes, headers: dict[str, str]) -> httpx.Response:
    return await client.post(f"http://localhost{hook['path']}", content=body, headers=headers)


async def test_a_signed_request_becomes_an_event(client: httpx.AsyncClient) -> None:
    hook = await made(client)
    assert hook["secret"].startswith("whsec_")
    answer = await post(client, hook, BODY, signed(hook))
    assert answer.status_code == 202
    found = (await client.get(f"/events/{answer.json()['eventId']}")).json()
    assert (found["name"], found["payload"], found["actor"]) == (
        "partner.call",
        {"action": "push", "id": 7},
        "hook:partner",
    )


async def test_case_40_requests_that_are_not_genuine(client: httpx.AsyncClient) -> None:
    hook = await made(client)
    good = signed(hook)
    no_signature = {name: value for name, value in good.items() if name != "webhook-signature"}
    cut = {**good, "webhook-signature": good["webhook-signature"][:-4]}
    for body, headers in (
        (BODY + b" ", good),
        (BODY, cut),
        (BODY, no_signature),
        (BODY, {**good, "webhook-signature": "v1,"}),
        (BODY, {**good, "webhook-signature": good["webhook-signature"].replace("v1,", "v2,")}),
        (BODY, {**good, "webhook-id": "msg_2"}),
        (BODY, {**good, "webhook-timestamp": str(int(good["webhook-timestamp"]) + 1)}),
        (BODY, {**good, "webhook-timestamp": "soon"}),
        (BODY, signed(hook, age_s=360)),
        (BODY, signed(hook, age_s=-360)),
        (BODY, JSON),
    ):
        answer = await post(client, hook, body, headers)
        assert (answer.status_code, code(answer)) == (401, "bad_signature"), headers
    assert (await post(client, hook, BODY, signed(hook, age_s=240))).status_code == 202
    for unknown in ("0" * 32, hook["path"].rpartition("/")[2][:-1], "partner", hook["hookId"]):
        answer = await client.post(f"/in/{unknown}", content=BODY, headers=good)
        assert (answer.status_code, code(answer)) == (404, "not_found")
    assert len((await client.get("/events")).json()["items"]) == 1


async def test_case_40_a_request_that_is_sent_twice_is_one_event(client: httpx.AsyncClient) -> None:
    hook = await made(client)
    sent = await asyncio.gather(*(post(client, hook, BODY, signed(hook)) for _ in range(6)))
    assert sorted(answer.status_code for answer in sent) == [200] * 5 + [202]
    assert len({answer.json()["eventId"] for answer in sent}) == 1
    again = b'{"id":7,"action":"push"}'
    later = await post(client, hook, again, signed(hook, again))
    assert (later.status_code, later.json()["eventId"]) == (200, sent[0].json()["eventId"])
    assert (await post(client, hook, BODY, signed(hook, id="msg_2"))).status_code == 202


async def test_case_40_both_secrets_hold_during_the_overlap(client: httpx.AsyncClient) -> None:
    old = await made(client)
    new = (await client.post("/hooks/partner/rotate", json={"overlap": "10m"})).json()
    assert new["secret"] != old["secret"]
    assert new["oldSecretUntil"] is not None
    assert (await post(client, old, BODY, signed(old, id="a"))).status_code == 202
    assert (await post(client, old, BODY, signed(new, id="b"))).status_code == 202
    last = (await client.post(f"/hooks/{old['hookId']}/rotate", json={"overlap": 0})).json()
    assert last["oldSecretUntil"] is None
    for secret, status in ((old, 401), (new, 401), (last, 202)):
        assert (await post(client, old, BODY, signed(secret, id="c"))).status_code == status


async def test_github(client: httpx.AsyncClient) -> None:
    hook = await made(client, "github", secret="It's a Secret to Everybody")
    headers = {"X-Hub-Signature-256": f"sha256={sha256(hook)}", "X-GitHub-Delivery": "d-1", **JSON}
    first, second = [await post(client, hook, BODY, headers) for _ in range(2)]
    assert (first.status_code, second.status_code, second.json()) == (202, 200, first.json())
    for wrong in ("", sha256(hook), f"sha1={sha256(hook)}", f"sha256={sha256(hook)[:-1]}", f"sha256={'0' * 64}"):
        answer = await post(client, hook, BODY, {**headers, "X-Hub-Signature-256": wrong})
        assert (answer.status_code, code(answer)) == (401, "bad_signature")
    anonymous = await post(client, hook, BODY, {**headers, "X-GitHub-Delivery": ""})
    assert (anonymous.status_code, code(anonymous)) == (400, "bad_header")
    # The example of GitHub's documentation.
    text = b"Hello, World!"
    expected = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert sha256(hook, text) == expected


async def test_hmac_with_a_time_and_a_pointer(client: httpx.AsyncClient) -> None:
    hook = await made(
        client, "hmac", signatureHeader="X-Sign", timestampHeader="X-Time", dedupe={"pointer": "/data/0/id"}
    )
    body = b'{"data":[{"id":17}]}'
    at = str(int(time.time()))
    signature = sha256(hook, at.encode() + b"." + body)
    headers = {"X-Time": at, "X-Sign": signature, **JSON}
    for form in (signature, f"sha256={signature}", base64.b64encode(bytes.fromhex(signature)).decode()):
        assert (await post(client, hook, body, {**headers, "X-Sign": form})).status_code in (200, 202)
    assert len((await client.get("/events")).json()["items"]) == 1
    for wrong in ({"X-Sign": sha256(hook, body)}, {"X-Time": ""}, {"X-Time": str(int(at) - 301)}):
        assert (await post(client, hook, body, {**headers, **wrong})).status_code == 401
    nameless = b'{"data":[]}'
    unnamed = {**headers, "X-Sign": sha256(hook, at.encode() + b"." + nameless)}
    answer = await post(client, hook, nameless, unnamed)
    assert (answer.status_code, code(answer)) == (422, "bad_field")


async def test_hmac_over_a_time_recognises_a_repetition_by_its_signature(client: httpx.AsyncClient) -> None:
    hook = await made(client, "hmac", timestampHeader="X-Time")
    at = str(int(time.time()))
    headers = {"X-Time": at, "X-Signature": sha256(hook, at.encode() + b"." + BODY), **JSON}
    assert [(await post(client, hook, BODY, headers)).status_code for _ in range(2)] == [202, 200]


async def test_bearer(client: httpx.AsyncClient, server: Server) -> None:
    hook = await made(client, "bearer")
    good = {"Authorization": f"Bearer {hook['secret']}", **JSON}
    assert [(await post(client, hook, BODY, good)).status_code for _ in range(2)] == [202, 202]
    for wrong in ("Bearer x", f"Basic {hook['secret']}", "", f"Bearer {hook['secret']} "):
        assert (await post(client, hook, BODY, {**good, "Authorization": wrong})).status_code == 401
    (row,) = table(server.store, "hook")
    assert hook["secret"] not in str(row)


async def test_a_hook_takes_no_token_and_no_cookie(server: Server) -> None:
    token = server.token()
    async with server.client(token) as client:
        hook = await made(client)
    async with server.client() as anyone:
        assert (await post(anyone, hook, BODY, {"Authorization": f"Bearer {token}", **JSON})).status_code == 401
        assert (await post(anyone, hook, BODY, {"Cookie": "rota_session=x", **JSON})).status_code == 401
        assert (await post(anyone, hook, BODY, signed(hook))).status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":1e100000}',
        b'{"a":1,"a":2}',
        b'{"b":{"a":1,"\\u0061":2}}',
        b'{"a":"\\ud800"}',
        b'{"a":"\\u0000"}',
        b'{"a":NaN}',
        b"{} x",
        b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}',
        b"",
    ],
)
async def test_case_26_bad_json_in_a_hook(client: httpx.AsyncClient, body: bytes) -> None:
    hook = await made(client)
    answer = await post(client, hook, body, signed(hook, body))
    assert (answer.status_code, code(answer)) == (400, "bad_json")
    # The body of a stranger is not even looked at.
    assert (await post(client, hook, body, JSON)).status_code == 401
    assert (await client.get("/events")).json()["items"] == []


async def test_forms_and_other_media(client: httpx.AsyncClient) -> None:
    hook = await made(client)
    body = b"payload=%7B%22a%22%3A1%7D&x=+y"
    answer = await post(client, hook, body, {**signed(hook, body), "Content-Type": "application/x-www-form-urlencoded"})
    found = (await client.get(f"/events/{answer.json()['eventId']}")).json()
    assert found["payload"] == {"payload": '{"a":1}', "x": " y"}
    for bad in (b"x=%00", b"nonsense", b"\xff=1"):
        refused = await post(
            client, hook, bad, {**signed(hook, bad), "Content-Type": "application/x-www-form-urlencoded"}
        )
        assert (refused.status_code, code(refused)) == (400, "bad_body")
    other = await post(client, hook, BODY, {**signed(hook, id="x"), "Content-Type": "text/html"})
    assert (other.status_code, code(other)) == (415, "unsupported_media_type")
    cloud = await post(client, hook, BODY, {**signed(hook, id="y"), "Content-Type": "application/cloudevents+json"})
    assert cloud.status_code == 202
    large = await post(client, hook, b"x" * (2 * 1024 * 1024), signed(hook))
    assert (large.status_code, code(large)) == (413, "too_large")


# --- Definitions ----------------------------------------------------------------------------------


async def test_a_hook_is_made_shown_changed_and_deleted(client: httpx.AsyncClient, server: Server) -> None:
    hook = await made(client, description="their shop")
    assert hook["path"] == f"/api/v1/in/{hook['path'][-32:]}"
    shown = (await client.get("/hooks/partner")).json()
    assert "secret" not in shown
    assert (await client.get(f"/hooks/{hook['hookId']}")).json() == shown
    assert shown == {name: value for name, value in hook.items() if name != "secret"}
    assert (await client.get("/hooks")).json()["items"] == [shown]
    assert shown["dedupe"] == {"header": "webhook-id", "pointer": None}
    changed = await client.patch("/hooks/partner", json={"event": "shop.call", "dedupe": {"pointer": "/id"}})
    assert (changed.json()["event"], changed.json()["dedupe"]["pointer"]) == ("shop.call", "/id")
    default = (await client.patch("/hooks/partner", json={"dedupe": None, "description": None})).json()
    assert (default["dedupe"], default["description"]) == (shown["dedupe"], "")
    assert default["path"] == hook["path"]
    assert (await post(client, hook, BODY, signed(hook))).status_code == 202
    assert (await client.delete("/hooks/partner")).status_code == 204
    assert (await client.get("/hooks/partner")).status_code == 404
    assert (await post(client, hook, BODY, signed(hook))).status_code == 404
    rows = table(server.store, "audit")
    assert [row["action"] for row in rows] == ["hook.create", "hook.change", "hook.change", "hook.delete"]
    assert hook["secret"] not in str(rows)


async def test_case_14_conditions_of_changes(client: httpx.AsyncClient) -> None:
    await made(client)
    tag = (await client.get("/hooks/partner")).headers["etag"]
    assert (await client.get("/hooks/partner", headers={"If-None-Match": tag})).status_code == 304
    answers = await asyncio.gather(
        *(client.patch("/hooks/partner", json={"event": f"e{n}"}, headers={"If-Match": tag}) for n in range(2))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    stale = await client.delete("/hooks/partner", headers={"If-Match": tag})
    assert (stale.status_code, code(stale)) == (412, "precondition_failed")


async def test_dry_runs_change_nothing(client: httpx.AsyncClient) -> None:
    body = {"name": "partner", "event": "e", "scheme": "github"}
    dry = await client.post("/hooks?dryRun=true", json=body)
    assert (dry.status_code, dry.json()["dryRun"], dry.json()["would"]["event"]) == (200, True, "e")
    assert "secret" not in dry.json()["would"]
    assert (await client.get("/hooks")).json()["items"] == []
    hook = await made(client)
    for answer in (
        await client.patch("/hooks/partner?dryRun=true", json={"event": "other"}),
        await client.delete("/hooks/partner?dryRun=true"),
        await client.post("/hooks/partner/rotate?dryRun=true", json={"overlap": 0}),
    ):
        assert answer.json()["dryRun"] is True
    assert (await client.get("/hooks/partner")).json()["event"] == "partner.call"
    assert (await post(client, hook, BODY, signed(hook))).status_code == 202


async def test_case_20_a_secret_is_not_in_a_repeated_answer(client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k"}
    body = {"name": "partner", "event": "e", "scheme": "github"}
    first, second = [await client.post("/hooks", json=body, headers=key) for _ in range(2)]
    assert (first.status_code, second.status_code) == (201, 201)
    assert len(first.json()["secret"]) == 64
    assert second.json() == {**first.json(), "secret": None}
    taken = await client.post("/hooks", json=body)
    assert (taken.status_code, code(taken)) == (409, "name_taken")


@pytest.mark.parametrize(
    "change",
    [
        {"scheme": "plain"},
        {"name": "a b"},
        {"name": "f1e2d3c4-1111-7222-8333-444455556666"},
        {"event": "a b"},
        {"secret": "short"},
        {"scheme": "standard", "secret": "not base64 at all!"},
        {"dedupe": {"header": "a b"}},
        {"dedupe": {"pointer": "id"}},
        {"dedupe": {}},
        {"dedupe": {"header": "x", "pointer": "/x"}},
        {"signatureHeader": "X-Sign"},
        {"scheme": "hmac", "timestampHeader": "X\r\nEvil: 1"},
        {"namespace": "other"},
        {"key": "0" * 32},
        {"description": "\u0000"},
    ],
)
async def test_hooks_that_cannot_be(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    answer = await client.post("/hooks", json={"name": "partner", "event": "e", "scheme": "github", **change})
    assert answer.status_code == (400 if "description" in change else 422), answer.text
    assert (await client.get("/hooks")).json()["items"] == []


async def test_scopes_of_hooks(server: Server) -> None:
    async with server.client(server.token(Role.AUTHOR)) as author:
        await made(author)
    async with server.client(server.token(Role.OPERATOR)) as operator:
        assert (await operator.get("/hooks/partner")).status_code == 200
        for answer in (
            await operator.post("/hooks", json={}),
            await operator.patch("/hooks/partner", json={}),
            await operator.delete("/hooks/partner"),
            await operator.post("/hooks/partner/rotate"),
        ):
            assert (answer.status_code, code(answer)) == (403, "wrong_scope")


async def test_case_28_hooks_of_another_tenant_are_not_there(server: Server) -> None:
    async with server.client(server.token(namespaces=("other",))) as stranger, server.client(server.token()) as own:
        hook = await made(own)
        for thing in ("partner", hook["hookId"]):
            for answer in (
                await stranger.get(f"/hooks/{thing}"),
                await stranger.patch(f"/hooks/{thing}", json={"event": "e"}),
                await stranger.delete(f"/hooks/{thing}"),
                await stranger.post(f"/hooks/{thing}/rotate"),
            ):
                assert (answer.status_code, code(answer)) == (404, "not_found")
        assert (await stranger.get("/hooks")).json()["items"] == []
        theirs = await made(stranger)
        answer = await post(stranger, theirs, BODY, signed(theirs))
        assert answer.status_code == 202
        assert (await own.get("/events")).json()["items"] == []
        assert len((await stranger.get("/events")).json()["items"]) == 1
