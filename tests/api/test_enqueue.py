"""POST /executions with one execution or an array of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from rota.domain.access import Role, Scope
from rota.domain.job import Definition, Queue
from rota.store import reader
from tests.api.jobs import FREE, SEND, add_jobs
from tests.api.server import Server, code
from tests.support.tables import table


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    add_jobs(server.store, SEND, FREE)
    async with server.client() as client:
        yield client


async def test_an_execution_is_accepted(client: httpx.AsyncClient) -> None:
    answer = await client.post("/executions", json={"job": "send", "arguments": {"to": "a@b.c"}})
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert list(found)[:2] == ["executionId", "status"]
    assert answer.headers["location"] == f"/api/v1/executions/{found['executionId']}"
    expected = {"status": "queued", "job": "send", "app": "shop", "queue": "default", "version": 1, "created": True}
    assert expected.items() <= found.items()
    assert found["createdAt"] == found["runAt"]
    assert found["createdAt"].endswith("Z")
    by_id = await client.post("/executions", json={"job": found["jobId"], "arguments": {"to": "a@b.c"}})
    assert by_id.json()["jobId"] == found["jobId"]


async def test_options(client: httpx.AsyncClient, server: Server) -> None:
    options = {
        "delay": "1h",
        "priority": "high",
        "queue": "mail",
        "startWithin": 60,
        "timeout": 0,
        "retries": 3,
        "tags": ["a", "b"],
        "headers": {"tenant": "x"},
        "key": None,
        "at": None,
    }
    answer = await client.post("/executions", json={"job": "send", "arguments": {"to": "x"}, **options})
    found = answer.json()
    assert (answer.status_code, found["status"], found["priority"], found["queue"]) == (201, "scheduled", 10, "mail")
    assert found["tags"] == ["a", "b"]
    row = server.store.read(reader.execution, "default", found["executionId"])
    assert row.overrides == '{"timeout_s":0.0,"retry":{"policy":"Exponential","attempts":4}}'


async def test_a_retry_policy_of_one_execution(client: httpx.AsyncClient) -> None:
    policy = {"policy": "fixed", "attempts": 3, "delay": "7s"}
    answer = await client.post("/executions", json={"job": "free", "retry": policy})
    found = (await client.get(answer.headers["location"].removeprefix("/api/v1"))).json()
    assert found["retry"] == {"policy": "Fixed", "attempts": 3, "delay": 7.0}
    for wrong, pointer in (
        ({"retry": {**policy, "base": 1}}, "/retry"),
        ({"retry": {"attempts": 0}}, "/retry/attempts"),
        ({"retry": policy, "retries": 1}, "/retry"),
    ):
        refused = await client.post("/executions", json={"job": "free", **wrong})
        assert (refused.status_code, code(refused)) == (422, "bad_field")
        assert refused.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    ("members", "flaw", "pointer"),
    [
        ({"delay": "1h", "at": "2030-01-01T00:00:00Z"}, "bad_field", "/at"),
        ({"at": "2030-01-01T00:00:00"}, "bad_field", "/at"),
        ({"retries": "3"}, "bad_field", "/retries"),
        ({"retries": 3.5}, "bad_field", "/retries"),
        ({"retries": -1}, "bad_field", "/retries"),
        ({"retries": 10**9}, "bad_field", "/retries"),
        ({"priority": 101}, "bad_field", "/priority"),
        ({"priority": True}, "bad_field", "/priority"),
        ({"queue": "a/b"}, "bad_field", "/queue"),
        ({"tags": "a"}, "bad_field", "/tags"),
        ({"unique": {"scope": "sometimes"}}, "bad_field", "/unique"),
        ({"unique": {"onConflict": "fight"}}, "bad_field", "/unique/onConflict"),
        ({"startWithin": 0}, "bad_field", "/startWithin"),
        ({"arguments": []}, "bad_arguments", "/arguments"),
        ({"arguments": {"to": 7}}, "bad_arguments", "/arguments/to"),
        ({"arguments": {"to": "x", "cuont": 7}}, "bad_arguments", "/arguments/cuont"),
        ({"arguments": {}}, "bad_arguments", "/arguments/to"),
        ({"job": "sned"}, "unknown_job", "/job"),
        ({"app": "other"}, "unknown_job", "/job"),
        ({"jobs": "send"}, "unknown_field", "/jobs"),
    ],
)
async def test_what_is_wrong_has_a_pointer(
    client: httpx.AsyncClient, members: dict[str, object], flaw: str, pointer: str
) -> None:
    body = {"job": "send", "arguments": {"to": "x"}} | members
    answer = await client.post("/executions", json=body)
    assert (answer.status_code, code(answer)) == (422, flaw), answer.text
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


@pytest.mark.parametrize("member", ["namespace", "status", "fence", "actor", "executionId", "jobId"])
async def test_case_27_members_of_the_engine_are_refused(client: httpx.AsyncClient, member: str) -> None:
    answer = await client.post("/executions", json={"job": "free", member: "x"})
    assert (answer.status_code, code(answer)) == (422, "unknown_field")


BAD_JSON = {
    "depth": ('{"job":"free","arguments":{"a":%s}}' % ("[" * 100_000 + "]" * 100_000), ""),
    "digits": ('{"job":"free","arguments":{"a":%s}}' % ("1" * 5_000), "/arguments/a"),
    "exponent": ('{"job":"free","arguments":{"a":1e100000}}', "/arguments/a"),
    "duplicate": ('{"job":"free","job":"free"}', "/job"),
    "nested duplicate": ('{"job":"free","arguments":{"a":{"b":1,"b":2}}}', "/arguments/a/b"),
    "escaped duplicate": ('{"job":"free","arguments":{"a":1,"\\u0061":2}}', "/arguments/a"),
    "surrogate": ('{"job":"free","arguments":{"a":"\\ud800"}}', "/arguments/a"),
    "nul": ('{"job":"free","arguments":{"a":"\\u0000"}}', "/arguments/a"),
    "nan": ('{"job":"free","arguments":{"a":NaN}}', "/arguments/a"),
    "trailing": ('{"job":"free"} x', ""),
}


@pytest.mark.parametrize("name", BAD_JSON)
async def test_case_26_bad_json_in_a_body(client: httpx.AsyncClient, name: str) -> None:
    text, pointer = BAD_JSON[name]
    answer = await client.post("/executions", content=text, headers={"Content-Type": "application/json"})
    assert (answer.status_code, code(answer)) == (400, "bad_json")
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_numbers_keep_their_digits(client: httpx.AsyncClient, server: Server) -> None:
    text = '{"job":"free","arguments":{"a":1.10,"b":123456789012345678901234567890,"c":null}}'
    answer = await client.post("/executions", content=text, headers={"Content-Type": "application/json"})
    id = answer.json()["executionId"]
    row = server.store.read(lambda view: view.rows("arguments_of", id=id))[0]
    assert row[0] == '{"a":1.10,"b":123456789012345678901234567890,"c":null}'


async def test_case_24_an_array_is_accepted_as_a_whole_or_not_at_all(client: httpx.AsyncClient, server: Server) -> None:
    items = [{"job": "send", "arguments": {"to": f"{n}"}} for n in range(1_000)]
    items[412] = {"job": "send", "arguments": {"to": "x", "x": 1}}
    answer = await client.post("/executions", json=items)
    assert (answer.status_code, code(answer)) == (422, "bad_arguments")
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/412/arguments/x"]
    assert queued(server) == 0
    items[412] = {"job": "free", "arguments": {"x": 1}}
    answer = await client.post("/executions", json=items)
    assert answer.status_code == 201
    found = answer.json()["items"]
    assert [item["job"] for item in found[411:414]] == ["send", "free", "send"]
    assert len({item["executionId"] for item in found}) == 1_000 == queued(server)
    answer = await client.post("/executions", json=[*items, items[0]])
    assert (answer.status_code, code(answer)) == (413, "too_large")


async def test_case_37_a_full_queue_in_the_middle_of_an_array(client: httpx.AsyncClient, server: Server) -> None:
    add_jobs(server.store, Definition(name="slow", queue="small"), queues=(Queue(name="small", max_depth=5),))
    items = [{"job": "send", "arguments": {"to": "x"}}] + [{"job": "slow"}] * 6
    answer = await client.post("/executions", json=items)
    assert (answer.status_code, code(answer)) == (429, "queue_full")
    assert int(answer.headers["retry-after"]) >= 1
    assert queued(server) == 0


async def test_case_37_a_full_queue_refuses_a_trigger(client: httpx.AsyncClient, server: Server) -> None:
    add_jobs(server.store, Definition(name="slow", queue="small"), queues=(Queue(name="small", max_depth=1),))
    assert (await client.post("/jobs/slow/trigger")).status_code == 201
    for _ in range(2):
        refused = await client.post("/jobs/slow/trigger", headers={"Idempotency-Key": "k"})
        assert (refused.status_code, code(refused)) == (429, "queue_full")
        assert int(refused.headers["retry-after"]) >= 1
    assert queued(server) == 1


async def test_requests_of_one_moment_share_a_submission(client: httpx.AsyncClient, server: Server) -> None:
    submitted: list[int] = []
    submit = server.store.submit

    def noted(op: Callable[..., Any], *args: Any) -> Any:
        submitted.append(len(args[1]))
        return submit(op, *args)

    server.store.submit = noted  # type: ignore[method-assign, assignment]
    await client.post("/executions", json={"job": "free"})  # Reads the job, which is remembered then.
    body = [{"job": "free", "arguments": {"number": number}} for number in range(8)]
    answers = await asyncio.gather(*(client.post("/executions", json=one) for one in body))
    found = [(await client.get(answer.headers["location"].removeprefix("/api/v1"))).json() for answer in answers]
    assert [one["arguments"] for one in found] == [one["arguments"] for one in body]
    assert submitted == [1, 8]


async def test_keys_and_unique_give_an_existing_execution(client: httpx.AsyncClient) -> None:
    body = {"job": "send", "arguments": {"to": "x"}, "key": "order-7"}
    first, again = [await client.post("/executions", json=body) for _ in range(2)]
    assert (first.status_code, again.status_code, again.json()["created"]) == (201, 200, False)
    assert first.json()["executionId"] == again.json()["executionId"]
    other = await client.post("/executions", json=body | {"arguments": {"to": "y"}})
    assert (other.status_code, code(other)) == (409, "key_conflict")
    body = {"job": "send", "arguments": {"to": "x"}, "unique": {"key": "k", "onConflict": "reject"}}
    await client.post("/executions", json=body)
    refused = await client.post("/executions", json=body)
    assert (refused.status_code, code(refused)) == (409, "not_unique")
    assert refused.json()["existing"]


async def test_a_name_that_several_apps_have(client: httpx.AsyncClient, server: Server) -> None:
    add_jobs(server.store, FREE, app="other")
    answer = await client.post("/executions", json={"job": "free"})
    assert (answer.status_code, code(answer)) == (409, "ambiguous_name")
    assert {one["app"] for one in answer.json()["existing"]} == {"shop", "other"}
    assert (await client.post("/executions", json={"job": "free", "app": "other"})).json()["app"] == "other"


async def test_a_dry_run_leaves_nothing(client: httpx.AsyncClient, server: Server) -> None:
    answer = await client.post("/executions?dryRun=true", json={"job": "free"})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["dryRun"] is True
    assert (found["would"]["execution"]["status"], queued(server)) == ("queued", 0)
    assert "no live worker" in found["would"]["why"]["text"]


async def test_media_types_and_parameters(client: httpx.AsyncClient) -> None:
    answer = await client.post("/executions", content="{}", headers={"Content-Type": "text/plain"})
    assert (answer.status_code, code(answer)) == (415, "unsupported_media_type")
    for query in ("?answer=ids", "?wait=61s", "?wait=x", "?wait=-1"):
        answer = await client.post(f"/executions{query}", json={"job": "free"})
        assert (answer.status_code, code(answer)) == (400, "bad_parameter")


async def test_a_trace_is_kept_with_its_execution(client: httpx.AsyncClient, server: Server) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for given in (trace, "x" * 55):
        await client.post("/executions", json={"job": "free"}, headers={"traceparent": given})
    assert sorted(row["trace"] or "" for row in table(server.store, "execution")) == ["", trace]


async def test_a_token_may_be_limited_to_queues_and_jobs(server: Server) -> None:
    add_jobs(server.store, SEND, FREE)
    text = server.token(Role.PRODUCER, jobs=("free",), queues=("default",))
    async with server.client(text) as client:
        found = await client.post("/executions", json={"job": "free"})
        assert (found.status_code, found.json()["created"]) == (201, True)
        for body in ({"job": "send", "arguments": {"to": "x"}}, {"job": "free", "queue": "other"}):
            refused = await client.post("/executions", json=body)
            assert (refused.status_code, code(refused)) == (403, "wrong_scope")
    async with server.client(server.token(None, scopes=(Scope.READ,))) as viewer:
        assert (await viewer.post("/executions", json={"job": "free"})).status_code == 403


async def test_another_tenant_has_other_jobs(server: Server) -> None:
    add_jobs(server.store, SEND)
    async with server.client(server.token(Role.ADMIN, namespaces=("b",))) as other:
        answer = await other.post("/executions", json={"job": "send", "arguments": {"to": "x"}})
        assert (answer.status_code, code(answer)) == (422, "unknown_job")


def queued(server: Server) -> int:
    return int(server.store.read(lambda view: view.rows("namespace_depth", namespace="default", most=10_000))[0][0])
