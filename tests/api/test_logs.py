"""The log of an execution over HTTP: by range, as text, as NDJSON, and live. On both databases."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NoReturn

import httpx
import pytest

from rota.api.resources import logs
from rota.domain.access import Role
from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.note import Line
from rota.domain.outcome import Failed, Lost
from rota.domain.retry import Fixed
from rota.ids import FIRST_ID
from tests.api.server import Server, code
from tests.api.streaming import Stream, streaming
from tests.notes.telling import write
from tests.support.world import ERROR, World

AGAIN = Rules(retry=Fixed(attempts=5, delay=0))


class Job:
    """An execution that writes lines, over several attempts."""

    def __init__(self, server: Server) -> None:
        self.server, self.world = server, World(server.store)
        self.worker = self.world.join(lease_s=1e6)
        self.id = self.world.enqueue("send")
        self.attempt: Claim = self._claim()
        self.path = f"/api/v1/executions/{self.id}/logs"

    def _claim(self) -> Claim:
        (attempt,) = self.world.claim(self.worker)
        return attempt

    def write(self, *texts: str, first: int = 1, stream: str = "stdout", attempt: Claim | None = None) -> None:
        of, now = attempt or self.attempt, self.server.services.clock.now()
        write(
            self.world,
            [Line(of.id, of.fence, first + place, now, stream, text) for place, text in enumerate(texts)],
        )

    def fail(self, outcome: Any = None) -> Claim:
        """Ends the attempt, and begins the next one. Returns the old one."""
        before = self.attempt
        self.world.finish(before, outcome or Failed(ERROR), AGAIN)
        self.world.promote()
        self.attempt = self._claim()
        return before

    def succeed(self) -> None:
        self.world.finish(self.attempt)


@pytest.fixture
def job(server: Server) -> Job:
    return Job(server)


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LOOK_S", 0.01)
    monkeypatch.setattr(logs, "LATE_S", 0.2)


def url(job: Job) -> str:
    return f"/executions/{job.id}/logs"


async def test_a_page_of_lines(job: Job, client: httpx.AsyncClient) -> None:
    job.write("one", "two", "three")
    page = (await client.get(f"{url(job)}?limit=2")).json()
    assert [line["text"] for line in page["items"]] == ["one", "two"]
    assert (page["next"], page["hasMore"], page["isOver"], page["status"]) == ("1.2", True, False, "running")
    rest = (await client.get(f"{url(job)}?after=1.2")).json()
    assert [(line["fence"], line["line"], line["text"]) for line in rest["items"]] == [(1, 3, "three")]
    assert (rest["next"], rest["hasMore"]) == ("1.3", False)
    nothing = (await client.get(f"{url(job)}?after={rest['next']}")).json()
    assert (nothing["items"], nothing["next"], nothing["hasMore"]) == ([], "1.3", False)
    job.succeed()
    assert (await client.get(f"{url(job)}?after=1.3")).json()["isOver"]


async def test_attempts_streams_and_the_tail(job: Job, client: httpx.AsyncClient) -> None:
    job.write("a1", "a2")
    job.fail()
    job.write("b1", "b2", "b3")
    job.write("oops", first=4, stream="stderr")

    async def texts(query: str) -> list[str]:
        return [line["text"] for line in (await client.get(f"{url(job)}?{query}")).json()["items"]]

    assert await texts("") == ["a1", "a2", "b1", "b2", "b3", "oops"]
    assert await texts("attempt=1") == ["a1", "a2"]
    assert await texts("stream=stderr") == ["oops"]
    assert await texts("tail=2") == ["b3", "oops"]
    assert await texts("tail=1&attempt=1") == ["a2"]
    assert await texts("tail=99") == await texts("")
    assert await texts("after=1.1&limit=2") == ["a2", "b1"]
    assert await texts("attempt=7") == []


async def test_the_header_accept_decides(job: Job, client: httpx.AsyncClient) -> None:
    job.write(*(f"line {number}" for number in range(2500)))
    job.succeed()
    whole = await client.get(url(job), headers={"Accept": "text/plain"})
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.text.splitlines() == [f"line {number}" for number in range(2500)]
    rows = await client.get(f"{url(job)}?tail=3", headers={"Accept": "application/x-ndjson"})
    assert [json.loads(row)["line"] for row in rows.text.splitlines()] == [2498, 2499, 2500]
    few = await client.get(f"{url(job)}?limit=3", headers={"Accept": "text/*;q=0.5, text/plain"})
    assert few.text == "line 0\nline 1\nline 2\n"
    for accepted in ("*/*", "application/*", "text/html, application/json;q=0.9, */*;q=0.1", "application/json"):
        assert (await client.get(url(job), headers={"Accept": accepted})).headers["content-type"] == "application/json"
    refused = await client.get(url(job), headers={"Accept": "image/png"})
    assert (refused.status_code, code(refused)) == (406, "not_acceptable")


@pytest.mark.parametrize(
    "query",
    [
        "after=1",
        "after=1.x",
        "after=9999999999.1",
        "tail=0",
        "limit=1001",
        "limit=0",
        "stream=both",
        "attempt=0",
        "after=1.1&tail=2",
        "atempt=1",
        "tail=1e3",
    ],
)
async def test_bad_parameters(job: Job, client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"{url(job)}?{query}")
    assert answer.status_code == 400
    assert code(answer) in ("bad_parameter", "unknown_parameter")


async def test_case_39_hostile_text_stays_text(job: Job, client: httpx.AsyncClient) -> None:
    hostile = "\x1b[31mred\x1b]8;;http://evil\x07link\x1b]8;;\x07 <script>alert(1)</script> \u202eleft\r\nid: 9.9"
    job.write(hostile)
    job.succeed()
    page = await client.get(url(job))
    assert page.json()["items"][0]["text"] == hostile
    assert b"\x1b" not in page.content
    for accepted in ("text/plain", "application/json", "application/x-ndjson"):
        answer = await client.get(url(job), headers={"Accept": accepted})
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "html" not in answer.headers["content-type"]
    async with streaming(job.server, path=job.path) as stream:
        found = await stream.event("line")
        assert (found["id"], found["text"]) == ("1.1", hostile)
        assert (await stream.event())["name"] == "end"


async def read(stream: Stream, count: int) -> list[tuple[str, str]]:
    """The ids and texts of so many lines."""
    found = [await stream.event("line") for _ in range(count)]
    return [(one["id"], one["text"]) for one in found]


async def test_case_39_a_log_followed_over_a_retry_a_crash_and_a_reconnect(job: Job, server: Server) -> None:
    async with streaming(server, path=job.path) as stream:
        job.write("a1", "a2")
        assert await read(stream, 2) == [("1.1", "a1"), ("1.2", "a2")]
        first = job.fail()
        job.write("b1")
        # The last lines of an attempt may be written after the first of the next one.
        job.write("a3", first=3, attempt=first)
        assert await read(stream, 2) == [("1.3", "a3"), ("2.1", "b1")]
        job.fail(Lost(ERROR))
        job.write("c1")
        assert await read(stream, 1) == [("3.1", "c1")]
    job.write("c2", "c3", first=2)
    async with streaming(server, path=job.path, Last_Event_ID="3.1") as stream:
        assert await read(stream, 2) == [("3.2", "c2"), ("3.3", "c3")]
        job.write("c4", first=4)
        job.succeed()
        assert await read(stream, 1) == [("3.4", "c4")]
        end = await stream.event()
        assert (end["name"], end["status"]) == ("end", "success")
    async with streaming(server, path=job.path) as stream:
        ids = [id for id, _ in await read(stream, 8)]
        assert ids == ["1.1", "1.2", "1.3", "2.1", "3.1", "3.2", "3.3", "3.4"]
        assert (await stream.event())["name"] == "end"


async def test_a_followed_log_outlasts_an_outage_of_the_database(
    job: Job, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def away(*_: object) -> NoReturn:
        nonlocal looks
        looks += 1
        raise server.store.too_busy()

    async with streaming(server, path=job.path) as stream:
        job.write("a1")
        assert await read(stream, 1) == [("1.1", "a1")]
        with monkeypatch.context() as outage:
            outage.setattr(logs, "_page", away)
            async with asyncio.timeout(10):
                while looks < 3:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)  # sleep: until the stream has looked during the outage
        job.write("a2", first=2)
        assert await read(stream, 1) == [("1.2", "a2")]


async def test_a_live_stream_with_a_filter_and_a_limit(job: Job, server: Server) -> None:
    job.write("a1", "a2", "a3")
    async with streaming(server, "tail=2&limit=1", path=job.path) as stream:
        assert await read(stream, 1) == [("1.2", "a2")]
        assert (await stream.event())["name"] == "end"
    job.fail()
    async with streaming(server, "attempt=1&after=1.2", path=job.path) as stream:
        assert await read(stream, 1) == [("1.3", "a3")]
        assert (await stream.event())["name"] == "end"


async def test_streams_that_cannot_be(job: Job, client: httpx.AsyncClient) -> None:
    live = {"Accept": "text/event-stream"}
    forged = await client.get(url(job), headers={**live, "Last-Event-ID": "x"})
    assert (forged.status_code, code(forged)) == (400, "bad_header")
    foreign = await client.get(url(job), headers={**live, "Origin": "http://evil.example"})
    assert (foreign.status_code, code(foreign)) == (403, "cross_origin")
    missing = await client.get(f"/executions/{FIRST_ID}/logs", headers=live)
    assert (missing.status_code, code(missing)) == (404, "not_found")
    head = await client.head(url(job), headers=live)
    assert (head.status_code, head.content) == (200, b"")


async def test_case_38_too_many_streams(job: Job, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.api.feed.MOST_OF_TOKEN", 1)
    job.write("a")
    async with streaming(server, path=job.path) as stream, server.client() as client:
        await read(stream, 1)
        refused = await client.get(url(job), headers={"Accept": "text/event-stream"})
        assert (refused.status_code, code(refused)) == (429, "too_many_streams")
    async with streaming(server, path=job.path) as stream:
        await read(stream, 1)


async def test_case_30_a_revoked_token_ends_the_stream(job: Job, server: Server) -> None:
    text = server.token(Role.VIEWER, name="reader")
    job.write("a")
    async with (
        streaming(server, path=job.path, Authorization=f"Bearer {text}") as stream,
        server.client(server.token()) as admin,
    ):
        await read(stream, 1)
        tokens = (await admin.get("/tokens")).json()["items"]
        (id,) = [one["tokenId"] for one in tokens if one["name"] == "reader"]
        await admin.delete(f"/tokens/{id}")
        assert await stream.event("bye") == {"name": "bye", "id": None, "reason": "revoked"}


async def test_a_server_that_stops_says_bye(job: Job, server: Server) -> None:
    job.write("a")
    async with streaming(server, path=job.path) as stream:
        await read(stream, 1)
        server.services.is_draining = True
        assert (await stream.event("bye"))["reason"] == "draining"


async def test_case_28_logs_of_another_tenant_are_not_there(job: Job, server: Server) -> None:
    job.write("secret")
    async with server.client(server.token(namespaces=("other",))) as stranger:
        for accepted in ("application/json", "text/plain", "application/x-ndjson", "text/event-stream"):
            for query in ("", "?tail=1", "?after=1.0"):
                answer = await stranger.get(f"{url(job)}{query}", headers={"Accept": accepted})
                assert (answer.status_code, code(answer)) == (404, "not_found")
    async with server.client(server.token(Role.PRODUCER)) as producer:
        assert (await producer.get(url(job))).status_code == 403
