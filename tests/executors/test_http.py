"""HTTP jobs against real servers on this machine: requests, responses and redirects."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from rota import App, __version__
from rota.clock import ManualClock
from rota.domain.claim import Claim
from rota.domain.errors import DefinitionError
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Failed, Outcome, Succeeded
from rota.domain.status import Reason
from rota.executors.attempt_state import AttemptState
from rota.executors.http import address, signing
from rota.executors.http.answer import retry_after_s
from rota.executors.http.request import HttpExecutor, Request, parameters
from rota.executors.port import Executor
from rota.sdk.app import registry_of
from tests.support.waiting import PATIENCE_S

LOCAL = ["127.0.0.0/8"]
KEY = "not a secret, only for tests"

# A key and a self-signed certificate for the name hook.test.
CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQguGz3inCL8FtkJrQb
PaGCNqQb7GiIq5RVO3dtmSMIKNqhRANCAATg1W/NgGD28kp7wpPP/EEnC6/T/WNu
vTlLJrB6dThs6pchNQp1wzMWBZ8o/c3CNDWdGQ++3UC9c4BfQSy0Km35
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIUBAJGoPa2OozuqNbDRFWXO0HUrY8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJaG9vay50ZXN0MCAXDTI2MTExNjA2MzYyN1oYDzIxMjYxMDIz
MDYzNjI3WjAUMRIwEAYDVQQDDAlob29rLnRlc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATg1W/NgGD28kp7wpPP/EEnC6/T/WNuvTlLJrB6dThs6pchNQp1wzMW
BZ8o/c3CNDWdGQ++3UC9c4BfQSy0Km35o2kwZzAdBgNVHQ4EFgQUUACW1aGHvpJA
La8FoGXxgub0/MswHwYDVR0jBBgwFoAUUACW1aGHvpJALa8FoGXxgub0/MswDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglob29rLnRlc3QwCgYIKoZIzj0EAwID
SAAwRQIhALR1c3tZhO13nP5vFes68Lci7Qb6ILbXFn+q0WU76Z+7AiAInRNFs11V
y10sImhkJnZwyXArLZNhvMx6f1IV5qoqig==
-----END CERTIFICATE-----
"""


class Seen(msgspec.Struct):
    """A request as a server got it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Raw(msgspec.Struct):
    """What a handler wrote by itself; the connection ends after it."""


Handler = Callable[[Seen, asyncio.StreamWriter], Awaitable[bytes | Raw]]


class Server:
    """A small HTTP server in the test's own event loop."""

    def __init__(self, handler: Handler | bytes, certificate: Path | None = None) -> None:
        self.seen: list[Seen] = []
        self.connections = 0
        self.gone = asyncio.Event()
        self._handler = handler
        self._tls = None
        if certificate is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(certificate)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await self._read(reader)) is not None:
                self.seen.append(request)
                answer = self._handler if isinstance(self._handler, bytes) else await self._handler(request, writer)
                if isinstance(answer, Raw):
                    break
                writer.write(answer)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            self.gone.set()
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader) -> Seen | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.strip().split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Seen(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def claim(arguments: dict[str, Any] | None = None) -> Claim:
    return Claim(
        id="x-1",
        run=None,
        lane=0,
        rank=0,
        fence=7,
        attempts=1,
        crashes=0,
        first_start_at=0,
        started_at=0,
        job="send",
        arguments=json.dumps(arguments or {}),
        deadline=None,
        run_at=0,
        created_at=0,
    )


@contextlib.asynccontextmanager
async def executor(request: Request, **options: Any) -> AsyncIterator[HttpExecutor]:
    made = HttpExecutor(request, Rules(), **options)
    try:
        yield made
    finally:
        if made._pool is not None:
            await made._pool.aclose()


async def run(request: Request, arguments: dict[str, Any] | None = None, **options: Any) -> Outcome:
    given = claim(arguments)
    async with executor(request, **options) as made:
        return await made.run(given, AttemptState(given, None))


async def failure(request: Request, arguments: dict[str, Any] | None = None, **options: Any) -> Failed:
    outcome = await run(request, arguments, **options)
    assert isinstance(outcome, Failed), outcome
    return outcome


async def result(request: Request, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    outcome = await run(request, arguments, **options)
    assert isinstance(outcome, Succeeded), outcome
    return json.loads(outcome.result)


# --- What is sent ---------------------------------------------------------------------------------


async def test_arguments_are_sent_as_json_with_headers_that_identify_the_attempt() -> None:
    async with Server(answer()) as server:
        outcome = await run(Request(f"{server.url}/hook", allow=LOCAL), {"a": [1, None, "ü"]})
    assert outcome == Succeeded("null")
    (seen,) = server.seen
    assert (seen.method, seen.target, seen.body) == ("POST", "/hook", json.dumps({"a": [1, None, "ü"]}).encode())
    names = ("host", "content-type", "idempotency-key", "x-rota-job", "x-rota-attempt", "x-rota-fence", "user-agent")
    assert [seen.headers[name] for name in names] == [
        f"127.0.0.1:{server.port}",
        "application/json",
        "x-1",
        "send",
        "2",
        "7",
        f"rota/{__version__}",
    ]


async def test_a_request_needs_no_process() -> None:
    async with Server(answer()) as server, executor(Request(server.url, allow=LOCAL)) as made:
        fits: Executor = made
        state = AttemptState(claim(), None)
        assert await fits.run(claim(), state) == Succeeded("null")
        assert getattr(state, "usage", None) is None
        assert fits.completions is None
        assert fits.grace_s > 0


async def test_connections_are_reused() -> None:
    async with Server(answer()) as server, executor(Request(server.url, allow=LOCAL)) as made:
        for _ in range(3):
            await made.run(claim(), AttemptState(claim(), None))
    assert (len(server.seen), server.connections) == (3, 1)


async def test_arguments_are_encoded_for_their_place_in_the_url() -> None:
    nasty = "a/b?c=d&e#f%41 ü\r\n{other}"
    async with Server(answer()) as server:
        await result(
            Request(server.url + "/u/{id}/x?q={q}&n={n}&t={t}", method="GET", allow=LOCAL),
            {"id": nasty, "q": nasty, "n": 1.5, "t": True},
        )
    encoded = "a%2Fb%3Fc%3Dd%26e%23f%2541%20%C3%BC%0D%0A%7Bother%7D"
    assert server.seen[0].target == f"/u/{encoded}/x?q={encoded}&n=1.5&t=true"
    assert server.seen[0].body == b""
    assert "content-type" not in server.seen[0].headers


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("/u/{id}/x", {"id": ".."}),
        ("/u/{id}/x", {"id": "."}),
        ("/u/{id}", {"id": ""}),
        ("/u/%2e{id}/x", {"id": "."}),
        ("/u/{id}", {"id": None}),
        ("/u/{id}", {"id": [1]}),
        ("/u/{id}", {}),
        ("/?q={id}", {"id": {}}),
    ],
)
async def test_arguments_that_cannot_be_part_of_the_url_are_refused(path: str, arguments: dict[str, Any]) -> None:
    async with Server(answer()) as server:
        failed = await failure(Request(server.url + path, allow=LOCAL), arguments)
    assert (failed.reason, failed.permanent, server.seen) == (Reason.BAD_ARGUMENTS, True, [])


@pytest.mark.parametrize(
    ("template", "content_type", "sent"),
    [
        ('{"to": {to}, "n": {n}, "s": "dear {to}, {n}"}', "application/json", None),
        ("to={to}&n={n}", "application/x-www-form-urlencoded", "to=a%22%26+%5C&n=1"),
        ("{to} {n} {not a hole}", "text/plain; charset=utf-8", 'a"& \\ 1 {not a hole}'),
        ("{{to}} {{{n}}} {{ }} {{n}", "text/plain", "{to} {1} {{ }} {1"),
    ],
)
async def test_a_body_is_filled_according_to_its_content_type(
    template: str, content_type: str, sent: str | None
) -> None:
    async with Server(answer()) as server:
        request = Request(server.url, body=template, content_type=content_type, allow=LOCAL)
        await result(request, {"to": 'a"& \\', "n": 1})
    (seen,) = server.seen
    assert seen.headers["content-type"] == content_type
    if sent is None:
        assert json.loads(seen.body) == {"to": 'a"& \\', "n": 1, "s": 'dear a"& \\, 1'}
    else:
        assert seen.body.decode() == sent


@pytest.mark.parametrize(
    ("template", "sent"),
    [
        ('{"a": {"b": {n}}, "c": [{n}, "{{n}}"]}', {"a": {"b": 1}, "c": [1, "{n}"]}),
        ('{{key}: {n}, "z{key}": "{{{n}}}"}', {"k": 1, "zk": "{1}"}),
        ('{"a": "\\"{n}"}', {"a": '"1'}),
        ("{ {key}: {n}}", {"k": 1}),
    ],
)
async def test_braces_of_json_are_literal(template: str, sent: Any) -> None:
    async with Server(answer()) as server:
        await result(Request(server.url, body=template, allow=LOCAL), {"n": 1, "key": "k"})
    assert json.loads(server.seen[0].body) == sent


@pytest.mark.parametrize("body", ['{{"x": 2}}', '{{"x": {n}}}', '{"a": -{n}}', "to={n}", '{"a": {{n}}}', '{"a": "{n}'])
def test_a_body_that_is_never_json_is_refused_with_a_hint_about_braces(body: str) -> None:
    with pytest.raises(DefinitionError, match=r"no JSON.*not doubled"):
        Request("http://example.com/", body=body)
    assert Request("http://example.com/", body=body, content_type="text/plain").body == body


async def test_a_request_may_have_no_body() -> None:
    async with Server(answer()) as server:
        await result(Request(server.url, body=None, allow=LOCAL), {"a": 1})
    assert (server.seen[0].body, server.seen[0].headers["content-length"]) == (b"", "0")


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
async def test_some_methods_do_not_send_the_arguments(method: str) -> None:
    async with Server(answer()) as server:
        await result(Request(server.url + "/{a}", method=method, allow=LOCAL), {"a": 1})
    assert (server.seen[0].method, server.seen[0].target, server.seen[0].body) == (method, "/1", b"")


def test_a_request_knows_the_arguments_that_it_needs() -> None:
    request = Request("http://example.com/{b}/{a}?c={b}", headers={"X": "{d}"}, body="[{e}, {a}]")
    assert parameters(request) == list("bade")
    assert parameters(Request("http://example.com/{a}")) == ["a"]
    assert parameters(Request("http://example.com/{{a}}", headers={"X": "{{{b}}}"})) == ["b"]


async def test_placeholders_in_headers_are_replaced() -> None:
    async with Server(answer()) as server:
        await result(Request(server.url, headers={"X-To": "to {to}", "Accept": "text/x"}, allow=LOCAL), {"to": "Zoë"})
    assert server.seen[0].headers["x-to"] == "to Zoë"
    assert server.seen[0].headers["accept"] == "text/x"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "\x7f", "a\x0bb"])
async def test_a_header_cannot_be_split(value: str) -> None:
    async with Server(answer()) as server:
        failed = await failure(Request(server.url, headers={"X-To": "{to}"}, allow=LOCAL), {"to": value})
    assert (failed.reason, failed.permanent, server.seen) == (Reason.BAD_ARGUMENTS, True, [])
    with pytest.raises(DefinitionError, match="X-To"):
        Request("http://example.com", headers={"X-To": value})


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "ftp://example.com/"},
        {"url": "//example.com/"},
        {"url": "example.com"},
        {"url": "http://"},
        {"url": "http://{host}/"},
        {"url": "http://example.com:{port}/"},
        {"url": "{scheme}://example.com/"},
        {"url": "http://user:word@example.com/"},
        {"url": "http://@example.com/"},
        {"url": "http://example.com\\@other/"},
        {"url": "http://example.com/a b"},
        {"url": "http://example.com/#part"},
        {"method": "get"},
        {"method": "CONNECT"},
        {"method": "GET / HTTP/1.1\r\n"},
        {"headers": {"Host": "other"}},
        {"headers": {"content-LENGTH": "1"}},
        {"headers": {"X-Rota-Fence": "1"}},
        {"headers": {"Idempotency-Key": "1"}},
        {"headers": {"a b": "1"}},
        {"headers": {"X-A": "\x00"}},
        {"content_type": "a\r\nb"},
        {"success": ["20"]},
        {"success": ["299-200"]},
        {"success": "200"},
        {"retry": ["600"]},
        {"retry": ["200"]},
        {"success": ["200-503"], "retry": ["500-599"]},
        {"retry": ["sometimes"]},
        {"timeout_s": 0},
        {"connect_timeout_s": -1},
        {"max_response_bytes": -1},
        {"follow_redirects": 6},
        {"result": "xml"},
        {"secret": "sk-the/key:itself"},
        {"allow": ["10.0.0.0/99"]},
        {"allow": "10.0.0.0/8"},
    ],
)
def test_an_invalid_request_is_refused_when_it_is_declared(fields: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError) as raised:
        Request(**{"url": "http://example.com/", **fields})
    assert "sk-" not in str(raised.value)


def test_a_request_is_data() -> None:
    request = Request("https://example.com/{a}", success=["200"], secret="KEY")
    assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"url": "ftp://example.com"}', type=Request)


# --- Signatures -----------------------------------------------------------------------------------


async def test_a_receiver_needs_nothing_but_the_request_and_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", KEY)
    async with Server(answer()) as server:
        await result(Request(server.url + "/a?b=c", secret="HOOK_KEY", allow=LOCAL), {"x": 1})
    (seen,) = server.seen
    assert signing.verify(seen.headers, seen.method, seen.target, seen.body, KEY.encode())


async def test_a_receiver_with_the_key_verifies_a_signed_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", KEY)
    clock = ManualClock()
    async with Server(answer()) as server:
        await result(Request(server.url + "/a/{x}?b={x}", secret="HOOK_KEY", allow=LOCAL), {"x": "ü"}, clock=clock)
    (seen,) = server.seen
    headers, method, target, body, key = seen.headers, seen.method, seen.target, seen.body, KEY.encode()
    assert signing.verify(headers, method, target, body, key, clock=clock)
    assert not signing.verify(headers, method, target, body, key), "by the machine's clock it is old"
    assert not signing.verify(headers, "PUT", target, body, key, clock=clock)
    assert not signing.verify(headers, method, target + "&c=1", body, key, clock=clock)
    assert not signing.verify(headers, method, target, body + b" ", key, clock=clock)
    assert not signing.verify(headers, method, target, body, b"another key", clock=clock)
    for name in ("idempotency-key", "x-rota-job", "x-rota-attempt", "x-rota-fence"):
        without = {other: value for other, value in headers.items() if other != name}
        assert not signing.verify(without, method, target, body, key, clock=clock), name
        assert not signing.verify({**headers, name: "other"}, method, target, body, key, clock=clock), name
        assert signing.verify({**without, name.title(): f" {headers[name]} "}, method, target, body, key, clock=clock)
    assert not signing.verify({**headers, "X-Rota-Added": "1"}, method, target, body, key, clock=clock)
    assert signing.verify({**headers, "Via": "a proxy"}, method, target, body, key, clock=clock)
    for name, value in {
        "x-rota-timestamp": str(int(headers["x-rota-timestamp"]) + 1),
        "x-rota-signature": headers["x-rota-signature"].replace("v1=", "v0="),
    }.items():
        assert not signing.verify({**headers, name: value}, method, target, body, key, clock=clock)
        assert not signing.verify({**headers, name: "é"}, method, target, body, key, clock=clock)
        assert not signing.verify({**headers, name: ""}, method, target, body, key, clock=clock)
    clock.advance(300)
    assert signing.verify(headers, method, target, body, key, clock=clock)
    clock.advance(1)
    assert not signing.verify(headers, method, target, body, key, clock=clock)
    clock.advance(-602)
    assert not signing.verify(headers, method, target, body, key, clock=clock)


async def test_no_request_is_sent_without_its_signing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOK_KEY", raising=False)
    async with Server(answer()) as server:
        failed = await failure(Request(server.url, secret="HOOK_KEY", allow=LOCAL))
    assert "HOOK_KEY" in failed.error.message
    assert server.seen == []


# --- What becomes of the answer -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body", "headers", "expected"),
    [
        ("none", b"anything", {}, None),
        ("json", b'{"a": [1]}', {}, {"a": [1]}),
        ("json", b"", {}, None),
        ("text", "grüß\x00 dich".encode(), {}, "grüß␀ dich"),
        ("text", "grüß".encode("latin-1"), {"Content_Type": "text/plain; charset=ISO-8859-1"}, "grüß"),
        ("text", b"\xff", {"Content_Type": "text/plain; charset=rot13"}, "\ufffd"),
        (
            "full",
            b"[1]",
            {"Content_Type": "application/json", "Set_Cookie": "a=b", "ETag": "7"},
            {"status": 200, "headers": {"content-type": "application/json", "etag": "7"}, "body": [1], "is_cut": False},
        ),
        ("full", b"[1", {"ETag": "7"}, {"status": 200, "headers": {"etag": "7"}, "body": "[1", "is_cut": False}),
    ],
)
async def test_a_response_becomes_the_result(kind: Any, body: bytes, headers: dict[str, str], expected: Any) -> None:
    async with Server(answer(200, body, **headers)) as server:
        assert await result(Request(server.url, result=kind, allow=LOCAL)) == expected


@pytest.mark.parametrize(
    ("body", "headers"),
    [(b"{", {}), (b"\xff", {}), (b"[" * 5000, {}), (b'"\\u0000"', {}), (b"x", {"Content_Encoding": "br"})],
)
async def test_a_response_that_cannot_be_a_result_fails_without_a_retry(body: bytes, headers: dict[str, str]) -> None:
    async with Server(answer(200, body, **headers)) as server:
        failed = await failure(Request(server.url, result="json", allow=LOCAL))
    assert (failed.reason, failed.permanent) == (Reason.BAD_RESULT, True)


@pytest.mark.parametrize(
    ("status", "is_retried"),
    [(400, False), (404, False), (408, True), (425, True), (429, True), (500, True), (503, True), (304, False)],
)
async def test_the_status_code_decides_about_a_retry(status: int, is_retried: bool) -> None:
    async with Server(answer(status, b"" if status == 304 else b"too   bad")) as server:
        failed = await failure(Request(server.url + "/p?token=hidden&bare", allow=LOCAL))
    assert (failed.error.type, failed.permanent, failed.retry_in_s) == ("HttpStatus", not is_retried, None)
    assert f"POST {server.url}/p?token=…&… was answered with {status}" in failed.error.message
    assert "hidden" not in failed.error.message
    assert status == 304 or failed.error.message.endswith(": too bad")


async def test_success_and_retry_codes_can_be_declared() -> None:
    async with Server(answer(404)) as server:
        assert await result(Request(server.url, success=[200, "404-410"], allow=LOCAL)) is None
        assert not (await failure(Request(server.url, retry=["404"], allow=LOCAL))).permanent
        assert (await failure(Request(server.url, retry=[], allow=LOCAL))).permanent


async def test_retry_after_is_respected() -> None:
    clock = ManualClock()
    date = datetime.fromtimestamp(clock.now() / 1e6, UTC) + timedelta(seconds=90)
    for header, wait in {"120": 120.0, format_datetime(date, usegmt=True): 90.0, "soon": None}.items():
        async with Server(answer(503, Retry_After=header)) as server:
            failed = await failure(Request(server.url, allow=LOCAL), clock=clock)
        assert (failed.retry_in_s, failed.permanent) == (wait, False)
    async with Server(answer(400, Retry_After="120")) as server:
        assert (await failure(Request(server.url, allow=LOCAL))).retry_in_s is None


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("0", 0.0),
        ("99999999999", 86_400.0),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("Sun Nov  6 08:49:37 1994", 0.0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86_400.0),
        ("Fri, 99 Jan 2100 00:00:00 GMT", None),
    ],
)
def test_retry_after_stays_within_a_day(text: str, wait: float | None) -> None:
    assert retry_after_s(text, ManualClock().now()) == wait


async def test_a_large_response_is_cut_and_marked_as_cut() -> None:
    async with Server(answer(200, b"x" * 5000)) as server:
        full = await result(Request(server.url, result="full", max_response_bytes=1000, allow=LOCAL))
        assert (full["body"], full["is_cut"]) == ("x" * 1000, True)
        text = await result(Request(server.url, result="text", max_response_bytes=1000, allow=LOCAL))
        assert text == "x" * 1000 + "\n… cut off after 1,000 characters"
        assert await result(Request(server.url, max_response_bytes=0, allow=LOCAL)) is None
        failed = await failure(Request(server.url, result="json", max_response_bytes=1000, allow=LOCAL))
        assert "cut off after 1,000 bytes" in failed.error.message
        exact = await result(Request(server.url, result="full", max_response_bytes=5000, allow=LOCAL))
        assert (len(exact["body"]), exact["is_cut"]) == (5000, False)


async def test_a_text_that_is_too_large_to_be_stored_is_cut() -> None:
    async with Server(answer(200, b"\x01" * 1000)) as server:
        text = await result(Request(server.url, result="text", allow=LOCAL), max_result_bytes=2000)
    assert text.startswith("\x01" * 250 + "\n… cut off")


async def test_an_endless_response_is_cut() -> None:
    async def endless(seen: Seen, writer: asyncio.StreamWriter) -> Raw:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
            await writer.drain()

    async with Server(endless) as server:
        full = await result(Request(server.url, result="full", max_response_bytes=100_000, allow=LOCAL))
        await asyncio.wait_for(server.gone.wait(), PATIENCE_S)
    assert (len(full["body"]), full["is_cut"]) == (100_000, True)


async def test_a_line_is_written_to_the_log() -> None:
    lines: list[tuple[str, str]] = []

    class Logged(AttemptState):
        def write_log(self, stream: str, text: str) -> None:
            lines.append((stream, text))

    async with Server(answer(503)) as server, executor(Request(server.url + "/p?a=b", allow=LOCAL)) as made:
        await made.run(claim(), Logged(claim(), None))
    ((stream, text),) = lines
    assert stream == "log"
    assert text.startswith(f"POST {server.url}/p?a=… → 503 in ")


# --- Without an answer ----------------------------------------------------------------------------


async def test_a_refused_connection_is_retried() -> None:
    async with Server(answer()) as server:
        pass
    failed = await failure(Request(server.url, allow=LOCAL))
    assert (failed.error.type, failed.permanent) == ("HttpConnection", False)
    assert "refused" in failed.error.message
    assert (await failure(Request(server.url, retry=["500-599"], allow=LOCAL))).permanent


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b"what?\r\n\r\n", b"HTTP/1.1 200 OK\r\nA"]
)
async def test_a_request_is_retried_if_the_server_closes_or_sends_garbage(said: bytes) -> None:
    async def close(seen: Seen, writer: asyncio.StreamWriter) -> Raw:
        writer.write(said)
        return Raw()

    async with Server(close) as server:
        failed = await failure(Request(server.url, allow=LOCAL))
    assert (failed.error.type, failed.permanent) == ("HttpProtocol", False)


async def silent(seen: Seen, writer: asyncio.StreamWriter) -> Raw:
    await asyncio.Event().wait()
    return Raw()


async def test_a_request_has_a_timer_of_its_own() -> None:
    async with Server(silent) as server:
        failed = await failure(Request(server.url, timeout_s=0.1, allow=LOCAL))
    assert (failed.error.type, failed.permanent) == ("HttpTimeout", False)


class Dripping:
    """Answers byte by byte, for as long as the client reads."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def __call__(self, seen: Seen, writer: asyncio.StreamWriter) -> Raw:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            self.began.set()
            await asyncio.sleep(0.005)  # sleep: stands for a slow server


async def test_a_cancelled_request_is_aborted() -> None:
    dripping = Dripping()
    async with Server(dripping) as server, executor(Request(server.url, allow=LOCAL)) as made:
        running = asyncio.create_task(made.run(claim(), AttemptState(claim(), None)))
        await asyncio.wait_for(dripping.began.wait(), PATIENCE_S)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.wait_for(server.gone.wait(), PATIENCE_S)


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with Server(answer()) as server:
        assert await result(Request(server.url, allow=LOCAL)) is None


# --- Redirects ------------------------------------------------------------------------------------


def redirecting(status: int, to: str) -> Handler:
    async def handler(seen: Seen, writer: asyncio.StreamWriter) -> bytes:
        return answer(200, b"there") if seen.target == "/there" else answer(status, Location=to)

    return handler


@pytest.mark.parametrize(
    ("method", "status", "follows"),
    [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("PUT", 302, "PUT"),
        ("PUT", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
    ],
)
async def test_a_redirect_keeps_the_method_or_becomes_a_get(
    method: str, status: int, follows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_KEY", KEY)
    clock = ManualClock()
    async with Server(redirecting(status, "/there")) as server:
        request = Request(server.url, method=method, headers={"Authorization": "A"}, secret="HOOK_KEY", allow=LOCAL)
        await result(request, {"a": 1}, clock=clock)
    first, second = server.seen
    assert (first.method, second.method, second.target) == (method, follows, "/there")
    assert second.body == (first.body if follows == method else b"")
    assert ("content-type" in second.headers) == (second.body != b"")
    assert second.headers["authorization"] == "A"
    assert signing.verify(second.headers, second.method, second.target, second.body, KEY.encode(), clock=clock)


@pytest.mark.parametrize("most", [0, 1, 5])
async def test_the_number_of_redirects_is_limited(most: int) -> None:
    async with Server(redirecting(307, "/again")) as server:
        failed = await failure(Request(server.url, follow_redirects=most, allow=LOCAL))
    assert (failed.error.type, failed.permanent, len(server.seen)) == ("HttpStatus", True, most + 1)


async def test_a_redirect_without_location_or_declared_as_success_is_not_followed() -> None:
    async with Server(answer(302)) as server:
        assert (await failure(Request(server.url, allow=LOCAL))).permanent
    async with Server(redirecting(302, "/there")) as server:
        await result(Request(server.url, success=["3xx"], allow=LOCAL))
        assert len(server.seen) == 1


async def test_another_origin_gets_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", KEY)
    headers = {"Authorization": "A", "Cookie": "B", "X-Api-Key": "C"}
    async with Server(answer()) as other, Server(redirecting(307, f"{other.url}/there")) as server:
        await result(Request(server.url, headers=headers, secret="HOOK_KEY", allow=LOCAL), {"a": 1})
    private = {"authorization", "cookie", "x-api-key", "x-rota-signature", "x-rota-timestamp"}
    assert private <= set(server.seen[0].headers)
    assert not private & set(other.seen[0].headers)


async def test_another_origin_that_gets_the_body_gets_the_identifying_headers() -> None:
    async with Server(answer()) as other, Server(redirecting(307, f"{other.url}/there")) as server:
        await result(Request(server.url, allow=LOCAL), {"a": 1})
    (seen,) = other.seen
    names = ("idempotency-key", "x-rota-job", "x-rota-attempt", "x-rota-fence")
    assert ([seen.headers[name] for name in names], seen.body) == (["x-1", "send", "2", "7"], b'{"a": 1}')


@pytest.mark.parametrize(
    ("first", "then", "is_as_trusted"),
    [
        ("http://a.example/", "http://a.example/b", True),
        ("http://a.example/", "https://a.example/b", True),
        ("http://a.example:80/", "https://A.example:443/b", True),
        ("http://a.example:8080/", "https://a.example/", False),
        ("http://a.example/", "https://a.example:8443/", False),
        ("https://a.example/", "http://a.example/", False),
        ("http://a.example/", "https://b.a.example/", False),
        ("https://a.example/", "https://b.example/", False),
        ("https://a.example/", "https://a.example:8443/", False),
    ],
)
def test_credentials_follow_to_the_same_origin_or_to_the_same_host_encrypted(
    first: str, then: str, is_as_trusted: bool
) -> None:
    assert address.is_as_trusted(address.parsed(then), address.parsed(first)) is is_as_trusted


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.2:{port}/there",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]:{port}/there",
        "http://localhost.:{port}/there?token=hidden",
        "//0x7f000002:{port}/there",
        "http://user:word@127.0.0.1:{port}/there",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://127.0.0.1:{port}/there",
        "http://１２７.0.0.2/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:0/",
    ],
)
async def test_the_target_of_a_redirect_is_checked(to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(seen: Seen, writer: asyncio.StreamWriter) -> bytes:
        location = to.replace("{port}", str(server.port)).encode()
        return b"HTTP/1.1 307 Away\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n"

    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.2", 0))])
    async with Server(handler) as server:
        failed = await failure(Request(server.url, allow=["127.0.0.1/32"]))
    assert (failed.error.type, failed.permanent, len(server.seen)) == ("HttpRefused", True, 1), failed
    assert "hidden" not in failed.error.message
    assert "word" not in failed.error.message.replace("password", "")


# --- Encrypted connections ------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The certificate of hook.test, which is this machine."""
    address.prepared.cache_clear()
    path = tmp_path / "certificate.pem"
    path.write_text(CERTIFICATE)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.1", 0))])
    yield path
    address.prepared.cache_clear()


async def test_an_untrusted_certificate_is_refused(certificate: Path) -> None:
    async with Server(answer(), certificate) as server:
        failed = await failure(Request(f"https://hook.test:{server.port}/", allow=LOCAL))
    assert (failed.error.type, failed.permanent, server.seen) == ("HttpTls", False, [])
    assert "self-signed" in failed.error.message


async def test_a_certificate_is_checked_by_name_though_the_address_is_pinned(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with Server(answer(), certificate) as server:
        assert await result(Request(f"https://hook.test:{server.port}/", allow=LOCAL)) is None
        assert server.seen[0].headers["host"] == f"hook.test:{server.port}"
        failed = await failure(Request(f"https://other.test:{server.port}/", allow=LOCAL))
    assert failed.error.type == "HttpTls"
    assert "mismatch" in failed.error.message
    assert len(server.seen) == 1


async def test_a_redirect_from_https_to_http_is_refused(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with Server(answer()) as plain, Server(redirecting(307, f"{plain.url}/there"), certificate) as server:
        failed = await failure(Request(f"https://hook.test:{server.port}/", allow=LOCAL))
    assert (failed.error.type, failed.permanent, plain.seen) == ("HttpRefused", True, [])
    assert "from https to http" in failed.error.message


async def test_a_server_that_does_not_speak_tls_is_retried() -> None:
    def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(400))
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        failed = await failure(Request(f"https://127.0.0.1:{port}/", allow=LOCAL))
    assert (failed.error.type, failed.permanent) == ("HttpTls", False)


# --- The extra ------------------------------------------------------------------------------------


def test_a_worker_without_httpx_cannot_run_requests_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("shop", url="sqlite:///unused.db")
    app.http("fetch", "http://example.com")
    app.job(name="plain")(lambda: None)
    assert sorted(registry_of(app).targets()) == ["fetch", "plain"]
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.setattr(address, "missing", address.missing.__wrapped__)
    assert registry_of(app).unavailable() == {"fetch": "pip install rota[http]"}
    assert sorted(registry_of(app).targets()) == ["plain"]


def test_httpx_is_imported_only_when_a_request_is_made() -> None:
    code = "import sys, rota.executors.http.request; sys.exit('httpx' in sys.modules or 'httpcore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
