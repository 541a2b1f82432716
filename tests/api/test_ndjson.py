"""POST /executions with a stream of lines."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rota.api import ndjson
from rota.domain import token
from rota.domain.access import Role
from rota.domain.job import Definition, Queue
from rota.ops import tokens as token_ops
from rota.store import access_reader
from tests.api.jobs import FREE, SEND, add_jobs
from tests.api.process import server_process
from tests.api.server import Server, code, serving
from tests.api.test_enqueue import BAD_JSON
from tests.support.proving import proof

NDJSON = {"Content-Type": "application/x-ndjson"}
LINE = b'{"job":"free","arguments":{"n":1}}'


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    add_jobs(server.store, SEND, FREE)
    async with server.client() as client:
        yield client


async def sent(client: httpx.AsyncClient, body: Any, query: str = "", **headers: str) -> list[dict[str, Any]]:
    answer = await client.post(f"/executions{query}", content=body, headers=NDJSON | headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson"), answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def refused(answer: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(one["line"], one["problem"]["code"]) for line in answer for one in line.get("refused", ())]


def queued(server: Server) -> int:
    return int(server.store.read(lambda view: view.rows("namespace_depth", namespace="default", most=10**7))[0][0])


async def test_case_21_lines_of_all_kinds(client: httpx.AsyncClient, server: Server) -> None:
    lines = [LINE] * 6 + [b'{"job":', LINE, b"", b"  ", LINE + b"\r"]
    answer = await sent(client, b"\n".join([*lines, LINE]))  # The last line has no line break.
    assert refused(answer) == [(7, "bad_json")]
    assert answer[-1] == {"done": {"accepted": 9, "refused": 1}}
    assert [line["committed"] for line in answer[:-1]] == [{"from": 1, "to": 12}]
    assert queued(server) == 9
    answer = await sent(client, LINE + b"\n" + LINE + b"\n")  # The last line break begins no line.
    assert answer == [{"committed": {"from": 1, "to": 2}, "refused": []}, {"done": {"accepted": 2, "refused": 0}}]
    answer = await sent(client, b"\xef\xbb\xbf" + LINE + b"\n" + LINE)
    assert refused(answer) == [(1, "bad_json")]
    assert answer[-1] == {"done": {"accepted": 1, "refused": 1}}


async def test_case_21_chunks(client: httpx.AsyncClient, server: Server) -> None:
    answer = await sent(client, b"\n".join([LINE] * 4_500), "?answer=ids")
    assert answer[-1] == {"done": {"accepted": 4_500, "refused": 0}}
    ids = [id for line in answer[:-1] for id in line["ids"]]
    assert len(set(ids)) == 4_500 == queued(server)
    last = 0
    for line in answer[:-1]:
        assert line["committed"]["from"] == last + 1
        last = line["committed"]["to"]


@pytest.mark.parametrize("name", BAD_JSON)
async def test_case_26_bad_json_in_a_line(client: httpx.AsyncClient, name: str) -> None:
    text, pointer = BAD_JSON[name]
    answer = await sent(client, b"\n".join([LINE, text.encode(), LINE]))
    expected = {"code": "bad_json", "pointer": pointer}
    assert [line["refused"] for line in answer[:-1]] == [[{"line": 2, "problem": expected}]]
    assert answer[-1] == {"done": {"accepted": 2, "refused": 1}}


async def test_lines_that_the_store_refuses_do_not_spoil_the_others(client: httpx.AsyncClient, server: Server) -> None:
    made = await client.post("/executions", json={"job": "free", "arguments": {"n": 0}, "key": "k"})
    assert made.status_code == 201
    lines = [LINE, b'{"job":"free","arguments":{"n":2},"key":"k"}', b'{"job":"nothing"}', LINE]
    answer = await sent(client, b"\n".join(lines))
    assert refused(answer) == [(2, "key_conflict"), (3, "unknown_job")]
    assert answer[-1] == {"done": {"accepted": 2, "refused": 2}}
    assert queued(server) == 3


async def test_case_37_a_full_queue_stops_the_stream(client: httpx.AsyncClient, server: Server) -> None:
    add_jobs(server.store, Definition(name="slow", queue="small"), queues=(Queue(name="small", max_depth=10),))
    lines = [b'{"job":"slow"}'] * 10
    assert (await sent(client, b"\n".join(lines)))[-1] == {"done": {"accepted": 10, "refused": 0}}
    answer = await sent(client, b"\n".join(lines))
    stopped = answer[-1]["stopped"]
    assert (stopped["line"], stopped["problem"]["code"]) == (1, "queue_full")
    assert stopped["retryAfter"] > 0
    assert queued(server) == 10


async def test_a_thousand_refused_lines_stop_the_stream(client: httpx.AsyncClient, server: Server) -> None:
    answer = await sent(client, b"\n".join([LINE, *[b"{}"] * 2_500]))
    assert (answer[-1]["stopped"]["line"], answer[-1]["stopped"]["problem"]["code"]) == (2_001, "too_many")
    assert len(refused(answer)) == 1_999
    assert queued(server) == 1


async def test_case_23_a_stream_that_was_cut_is_sent_again(client: httpx.AsyncClient, server: Server) -> None:
    lines = [b'{"job":"free","arguments":{"n":%d}}' % number for number in range(3_000)]

    async def cut() -> AsyncIterator[bytes]:
        yield b"\n".join(lines[:2_500])
        raise httpx.ReadError("cut")

    answer = await sent(client, cut(), **{"Idempotency-Key": "k"})
    assert not any("done" in line for line in answer)
    whole = b"\n".join(lines)
    for _ in range(2):
        answer = await sent(client, whole, **{"Idempotency-Key": "k"})
        assert answer[-1] == {"done": {"accepted": 3_000, "refused": 0}}
        assert queued(server) == 3_000
    lines[7] = b'{"job":"free","arguments":{"n":"other"}}'
    answer = await sent(client, b"\n".join(lines), **{"Idempotency-Key": "k"})
    assert refused(answer) == [(8, "key_reused")]
    assert queued(server) == 3_000


async def test_a_slow_client_gets_its_answers_while_it_sends(client: httpx.AsyncClient, server: Server) -> None:
    """A line that waits for no other is committed after a twentieth of a second."""
    committed = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield LINE + b"\n"
        async with asyncio.timeout(5):
            while queued(server) < 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # sleep: a look at the database
        committed.set()
        yield LINE

    assert (await sent(client, slow()))[-1] == {"done": {"accepted": 2, "refused": 0}}
    assert committed.is_set()


async def test_a_line_that_is_too_long(url: str) -> None:
    with serving(url, max_payload_bytes=1024) as server:
        add_jobs(server.store, FREE)
        async with server.client() as client:
            line = b'{"job":"free","arguments":{"n":"%s"}}'
            lines = [LINE, line % (b"x" * 200_000), line % (b"x" * 2_000), LINE]

            async def pieces() -> AsyncIterator[bytes]:
                body = b"\n".join(lines)
                for start in range(0, len(body), 10_000):
                    yield body[start : start + 10_000]

            answer = await sent(client, pieces())
            assert refused(answer) == [(2, "too_large"), (3, "bad_arguments")]
            assert answer[-1] == {"done": {"accepted": 2, "refused": 2}}


async def test_compressed_lines_are_bounded(client: httpx.AsyncClient) -> None:
    answer = await sent(client, gzip.compress(b"\n".join([LINE] * 100)), **{"Content-Encoding": "gzip"})
    assert answer[-1] == {"done": {"accepted": 100, "refused": 0}}
    bomb = gzip.compress(b"\x00" * 50_000_000)
    answer = await sent(client, bomb, **{"Content-Encoding": "gzip"})
    assert answer[-1]["stopped"]["problem"]["code"] == "too_large"


async def test_case_30_a_revoked_token_ends_the_lines(server: Server) -> None:
    add_jobs(server.store, FREE)
    text = server.token(Role.PRODUCER)

    async def slow() -> AsyncIterator[bytes]:
        yield LINE + b"\n"
        async with asyncio.timeout(5):
            while queued(server) < 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # sleep: a look at the database
        row = server.store.read(access_reader.token_of, token.digest(text))
        assert row is not None
        server.store.transact(token_ops.revoke, "default", row.id, "test")
        server.api.authenticator.forget()
        yield LINE

    async with server.client(text) as client:
        answer = await sent(client, slow())
    assert answer[-1]["stopped"]["problem"]["code"] == "revoked_token"
    assert queued(server) == 1


async def test_a_slow_body_is_given_up(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "GAP_S", 0.1)

    async def endless() -> AsyncIterator[bytes]:
        yield LINE + b"\n"
        await asyncio.sleep(1)  # sleep: a client that sends nothing
        yield LINE

    answer = await sent(client, endless())
    assert answer[-1]["stopped"]["problem"]["code"] == "too_slow"


async def test_an_ids_answer_is_for_lines_only(client: httpx.AsyncClient) -> None:
    answer = await client.post("/executions?answer=all", content=LINE, headers=NDJSON)
    assert (answer.status_code, code(answer)) == (400, "bad_parameter")


def lines_of(count: int) -> Iterator[bytes]:
    block = b"\n".join([LINE] * 1_000) + b"\n"
    for _ in range(count // 1_000):
        yield block


@pytest.mark.parametrize("count", [20_000, proof(1_000_000)])
def test_case_22_a_client_that_reads_nothing_until_all_is_sent(url: str, tmp_path: Path, count: int) -> None:
    """httpx sends the whole body before it reads."""
    with serving(url) as server:
        add_jobs(server.store, FREE)
        with server_process(tmp_path, url) as process, httpx.Client(base_url=f"{process.url}/api/v1") as client:
            answer = client.post("/executions", content=lines_of(1_000), headers=NDJSON, timeout=600)
            before = memory(process.process.pid)
            answer = client.post("/executions", content=lines_of(count), headers=NDJSON, timeout=600)
            last = json.loads(answer.text.splitlines()[-1])
            assert last == {"done": {"accepted": count, "refused": 0}}
            assert memory(process.process.pid) - before < 64 * 1024 * 1024


def memory(pid: int) -> int:
    """The most memory that a process ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
