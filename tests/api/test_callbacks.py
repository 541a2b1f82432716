"""Callbacks: an execution of its own calls a URL, signed, when an execution has ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from rota.domain import callback, job, payload
from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Failed, Outcome, Succeeded
from rota.domain.served import ALL_APPS, REQUESTS
from rota.domain.status import Status
from rota.executors import kinds
from rota.executors.attempt_state import AttemptState
from rota.executors.http import address
from rota.executors.http.callback import SECRET, CallbackExecutor, key
from rota.executors.http.signing import verify
from rota.ops import after_end, callbacks, control
from rota.store import reader
from rota.views import execution as executions
from rota.views.callback import callback_state
from rota.views.execution import execution
from tests.api.jobs import FREE, add_jobs
from tests.api.server import Server, code
from tests.api.working import work
from tests.support.workers import Site

HOOK = "https://hooks.example/done"


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    add_jobs(server.store, FREE)
    async with server.client() as client:
        yield client


async def enqueue(client: httpx.AsyncClient, **about: Any) -> str:
    answer = await client.post("/executions", json={"job": "free", "callback": {"url": HOOK, **about}})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["executionId"])


def calls(server: Server) -> list[dict[str, Any]]:
    """The arguments of all executions that call back."""
    rows = server.store.read(executions.rows, "default", reader.Filter(job=callback.JOB)).items
    return [msgspec.json.decode(row.arguments) for row in rows]


async def test_a_call_is_placed_in_the_transaction_of_the_end(client: httpx.AsyncClient, server: Server) -> None:
    id = await enqueue(client)
    assert calls(server) == []
    state = server.store.read(callback_state, "default", id)
    assert state is not None
    assert (state.url, state.status) == (HOOK, None)
    server.store.transact(control.cancel, "default", id, "test")
    (told,) = calls(server)
    assert told["url"] == HOOK
    expected = {"executionId": id, "status": "cancelled", "job": "free", "app": "shop", "namespace": "default"}
    assert expected.items() <= told["told"].items()
    state = server.store.read(callback_state, "default", id)
    assert state is not None
    assert state.status is Status.QUEUED
    assert server.store.transact(after_end.wake_forgotten) == 0


async def test_other_ends_than_the_asked_ones_call_nothing(client: httpx.AsyncClient, server: Server) -> None:
    id = await enqueue(client, on=["failed"])
    server.store.transact(control.cancel, "default", id, "test")
    assert calls(server) == []
    assert server.store.read(lambda view: view.rows("open_callbacks"))[0][0] in (0, False)


async def test_a_callback_that_was_not_known_yet_is_called_a_little_later(
    client: httpx.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may have ended the execution, whose answer that no callback is open was a second old."""
    id = await enqueue(client)
    without = tuple(one for one in after_end.CONSEQUENCES if one is not callbacks.call_back)
    with monkeypatch.context() as old:
        old.setattr(after_end, "CONSEQUENCES", without)
        server.store.transact(control.cancel, "default", id, "test")
    assert calls(server) == []
    assert server.store.transact(after_end.wake_forgotten) == 1
    assert [one["told"]["executionId"] for one in calls(server)] == [id]
    assert server.store.transact(after_end.wake_forgotten) == 0


@pytest.mark.parametrize(
    ("target", "flaw"),
    [
        ("http://2130706433/", "forbidden_address"),
        ("http://[::ffff:127.0.0.1]/", "forbidden_address"),
        ("http://0x7f.1/", "forbidden_address"),
        ("http://169.254.169.254/latest", "forbidden_address"),
        ("http://10.0.0.1/", "forbidden_address"),
        ("ftp://example.com/", "bad_field"),
        ("http://user:pass@example.com/", "bad_field"),
        ("http://example.com/{x}", "bad_field"),
        ("http://example.com/a b", "bad_field"),
        ("https://example.com/" + "x" * 3000, "bad_field"),
        ("", "bad_field"),
    ],
)
async def test_case_41_addresses_that_are_refused_at_once(server: Server, target: str, flaw: str) -> None:
    add_jobs(server.store, FREE)
    async with server.client() as client:
        answer = await client.post("/executions", json={"job": "free", "callback": {"url": target}})
    assert (answer.status_code, code(answer)) == (422, flaw)
    assert answer.json()["errors"][0]["pointer"] == "/callback/url"


async def test_bad_members_of_a_callback(client: httpx.AsyncClient) -> None:
    for about, pointer in (
        ({"on": ["running"]}, "/callback/on"),
        ({"on": []}, "/callback/on"),
        ({"to": 1}, "/callback/to"),
    ):
        answer = await client.post("/executions", json={"job": "free", "callback": {"url": HOOK, **about}})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == pointer


async def test_the_job_that_calls_back_cannot_be_enqueued(client: httpx.AsyncClient, server: Server) -> None:
    """A caller could have anything signed."""
    await enqueue(client)
    body = {"job": callback.JOB, "arguments": {"url": HOOK, "told": {}}}
    for answer in (
        await client.post("/executions", json=body),
        await client.post("/executions", json=body | {"app": callback.APP}),
    ):
        assert (answer.status_code, code(answer)) == (422, "unknown_job")
    triggered = await client.post(f"/jobs/{callback.JOB}/trigger", json={"arguments": body["arguments"]})
    assert (triggered.status_code, code(triggered)) == (404, "not_found")


async def test_a_callback_is_replayed_only_with_its_own_arguments(client: httpx.AsyncClient, server: Server) -> None:
    """A caller could have anything signed, and sent anywhere."""
    id = await enqueue(client)
    server.store.transact(control.cancel, "default", id, "test")
    (call,) = work(server.store, REQUESTS, Failed(payload.error("HttpStatus", "404"), permanent=True), ALL_APPS)
    forged = {"url": "https://elsewhere.example/", "told": {"status": "success"}}
    refused = await client.post(f"/executions/{call}/replay", json={"arguments": forged})
    assert (refused.status_code, code(refused)) == (422, "bad_field")
    again = await client.post(f"/executions/{call}/replay")
    assert again.status_code == 201
    assert calls(server)[0] == calls(server)[1]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/schedules", {"job": callback.JOB, "app": callback.APP, "every": 60, "arguments": {"url": HOOK, "told": 1}}),
        ("/jobs", {"name": "mine", "app": callback.APP, "command": ["true"]}),
        ("/jobs", {"name": "mine", "function": {"app": callback.APP, "name": callback.JOB}}),
        (
            f"/workflows?app={callback.APP}",
            {
                "rota": "workflow/1",
                "name": "mine",
                "steps": [{"id": "a", "job": callback.JOB, "with": {"url": HOOK, "told": 1}}],
            },
        ),
    ],
)
async def test_no_definition_reaches_the_job_that_calls_back(
    client: httpx.AsyncClient, server: Server, path: str, body: dict[str, Any]
) -> None:
    await enqueue(client)
    answer = await client.post(path, json=body)
    assert code(answer) in ("unknown_job", "bad_field", "bad_definition", "bad_parameter"), answer.text


# --- The request ----------------------------------------------------------------------------------


@contextmanager
def answered(executor: CallbackExecutor, *answers: httpx.Response) -> Iterator[list[httpx.Request]]:
    seen: list[httpx.Request] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answers[len(seen) - 1]

    executor.answers = answer
    yield seen


def executor_of(definition: job.Definition) -> CallbackExecutor:
    made = kinds.executor(definition.target, Rules(), 1024)
    assert isinstance(made, CallbackExecutor)
    return made


def claimed(url: str) -> Claim:
    arguments = msgspec.json.encode({"url": url, "told": {"executionId": "x", "status": "success"}}).decode()
    id = "01900000-0000-7000-8000-000000000000"
    return Claim(id, 1, 0, 1, 0, 0, 0, 0, None, callback.JOB, arguments, None, 0, 0)


async def run(executor: CallbackExecutor, claim: Claim) -> Outcome:
    return await executor.run(claim, AttemptState(claim, None, executor.completions))


async def test_a_callback_is_signed_with_the_key_of_its_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "a secret of the workers")
    executor = executor_of(callbacks.definition("billing"))
    with answered(executor, httpx.Response(204)) as seen:
        assert isinstance(await run(executor, claimed("https://hooks.example/done?x=1")), Succeeded)
    (request,) = seen
    given = key("a secret of the workers", "billing").encode()
    target = request.url.raw_path.decode()
    assert verify(dict(request.headers), "POST", target, request.content, given)
    assert not verify(dict(request.headers), "POST", target, request.content + b" ", given)
    other = key("a secret of the workers", "shipping").encode()
    assert not verify(dict(request.headers), "POST", target, request.content, other)
    assert msgspec.json.decode(request.content) == {"executionId": "x", "status": "success"}


async def test_a_callback_without_a_secret_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET, raising=False)
    executor = executor_of(callbacks.definition("billing"))
    with answered(executor) as seen:
        outcome = await run(executor, claimed(HOOK))
    assert isinstance(outcome, Failed)
    assert (outcome.error.type, outcome.permanent, seen) == ("SecretMissing", False, [])


async def test_what_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "secret")
    executor = executor_of(callbacks.definition("billing"))
    moved = httpx.Response(302, headers={"Location": "http://127.0.0.1/"})
    with answered(executor, httpx.Response(503), httpx.Response(404), moved) as seen:
        outcomes = [await run(executor, claimed(HOOK)) for _ in range(3)]
    assert [isinstance(one, Failed) and one.permanent for one in outcomes] == [False, True, True]
    assert len(seen) == 3, "a redirect is not followed"


@pytest.mark.parametrize("host", ["2130706433", "[::ffff:127.0.0.1]", "flips.example", "127.0.0.1"])
async def test_case_41_a_forbidden_address_is_never_connected(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "secret")
    connected: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(b"!")
        writer.close()

    async def look_up(name: str) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(address.resolver, "look_up", look_up)
    listening = await asyncio.start_server(hear, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    executor = executor_of(callbacks.definition("billing"))
    outcome = await run(executor, claimed(f"http://{host}:{port}/"))
    listening.close()
    assert isinstance(outcome, Failed)
    assert (outcome.error.type, outcome.permanent, connected) == ("HttpRefused", True, [])


async def test_a_callback_that_fails_for_good_is_a_dead_letter(client: httpx.AsyncClient, server: Server) -> None:
    """A worker without an app claims it, as all HTTP jobs that are run from their definitions."""
    id = await enqueue(client)
    assert work(server.store, "free") == [id]
    refused = Failed(payload.error("HttpStatus", "404"), permanent=True)
    (dead,) = work(server.store, REQUESTS, refused, ALL_APPS)
    assert server.store.read(reader.are_dead, "default", [dead]) == {dead}
    assert server.store.read(execution, "default", dead).parent_id == id
    state = server.store.read(callback_state, "default", id)
    assert state is not None
    assert (state.status, state.execution_id) == (Status.FAILED, dead)


async def test_a_callback_is_tried_again(client: httpx.AsyncClient, server: Server) -> None:
    await enqueue(client)
    work(server.store, "free")
    (again,) = work(server.store, REQUESTS, Failed(payload.error("HttpConnection", "refused")), ALL_APPS)
    assert server.store.read(reader.status, "default", again) is Status.RETRYING


# --- By a worker ----------------------------------------------------------------------------------


class Receiver:
    """Answers requests on loopback with the given statuses, and the last one ever after."""

    def __init__(self, *statuses: int) -> None:
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        left = list(statuses)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.seen.append((self.path, dict(self.headers), body))
                self.send_response(left.pop(0) if len(left) > 1 else left[0])
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


async def test_a_worker_without_an_app_calls_back(server: Server, url: str, tmp_path: Path) -> None:
    """Refused once and delivered at the second attempt; a receiver that refuses for good makes a dead letter."""
    secret = "a secret of the workers"
    flaky, deaf = Receiver(503, 204), Receiver(404)
    run_at_once = {"name": "one", "command": ["true"]}
    with Site(tmp_path, url) as site:
        worker = site.worker("--processes", "1", app="*", callback_secret=secret, http_allow="127.0.0.1")
        async with server.client() as client:
            assert (await client.post("/jobs", json=run_at_once)).status_code == 201
            ids = []
            for receiver in (flaky, deaf):
                target = {"url": f"http://localhost:{receiver.port}/done?x=1"}
                made = await client.post("/jobs/one/trigger", json={"callback": target})
                assert made.status_code == 201, made.text
                ids.append(made.json()["executionId"])

            async def called(id: str, status: str) -> dict[str, Any]:
                async with asyncio.timeout(30):
                    while True:
                        found = (await client.get(f"/executions/{id}")).json()["callback"]
                        if found["status"] == status:
                            return dict(found)
                        worker.check()
                        await asyncio.sleep(0.02)  # sleep: another process does the work

            waiting = await called(ids[0], "retrying")
            assert waiting["url"] == f"http://localhost:{flaky.port}/done?x=1"
            await client.patch(f"/executions/{waiting['executionId']}", json={"runAt": "now"})
            await called(ids[0], "success")
            dead = await called(ids[1], "failed")
    assert server.store.read(reader.are_dead, "default", [dead["executionId"]]) == {dead["executionId"]}
    assert (len(flaky.seen), len(deaf.seen)) == (2, 1)
    path, headers, body = flaky.seen[1]
    assert verify(headers, "POST", path, body, key(secret, "default").encode())
    assert msgspec.json.decode(body)["executionId"] == ids[0]
    flaky.close()
    deaf.close()
