"""Messages between a child and its supervisor arrive unchanged, in every respect that a decision depends on."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any, cast

import pytest

from rota.domain import payload
from rota.domain.breaker import Breaker
from rota.domain.claim import Claim
from rota.domain.errors import LeaseLost, StoreFull, StoreUnavailable
from rota.domain.outcome import Cancelled, Failed, GivenBack, Outcome, Snoozed, Succeeded, TimedOut
from rota.domain.requirement import UNBOUNDED
from rota.domain.status import Reason
from rota.domain.usage import Usage
from rota.engine import wire
from rota.engine.port import WorkerPort
from rota.engine.process import ChildProcess
from rota.ops.claim import Claimed
from rota.ops.finish import Finished
from rota.store.hints import CancelAsked, Hint, Ready

ERROR = payload.error("ValueError", "no \U0001f4a9", "Traceback …")
OUTCOMES: list[Outcome] = [
    Succeeded('{"a":1}'),
    Failed(ERROR),
    Failed(ERROR, Reason.BAD_RESULT, permanent=True),
    Failed(ERROR, retry_in_s=7.5),
    TimedOut(ERROR),
    TimedOut(ERROR, total=True),
    Cancelled(),
    Snoozed(3.0),
    GivenBack(Reason.NOT_BEGUN, 5.0),
]


def across(finished: Finished) -> Finished:
    frame = wire.call(7, "finish", ([finished],))
    number, verb, (reports,) = wire.read_call(frame[wire.LENGTH :])
    assert (number, verb) == (7, "finish")
    return reports[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_report_is_transmitted_unchanged(outcome: Outcome) -> None:
    sent = Finished("x", 4, outcome) if isinstance(outcome, Succeeded) else Finished("x", 4, outcome, 0.25)
    assert across(sent) == sent


def test_all_fields_of_a_success_are_transmitted() -> None:
    breakers = (Breaker("bank"),)
    sent = [
        Finished("a", 1, Succeeded("1")),
        Finished("b", 2, Succeeded("2"), breakers=breakers),
        Finished("c", 3, Succeeded("3"), usage=Usage(cpu_s=1.5, exit_code=0)),
        Finished("d", 4, Failed(ERROR), written="4"),
        Finished("e", 5, Succeeded("5"), written="5"),
    ]
    _, _, (came,) = wire.read_call(wire.call(7, "finish", (sent,))[wire.LENGTH :])
    told = {one.id: one for one in came}
    assert [(told[one.id].fence, told[one.id].outcome) for one in sent] == [(one.fence, one.outcome) for one in sent]
    assert [one.id for one in sent if told[one.id].breakers == breakers] == ["b"]
    assert [one.usage for one in sent] == [told[one.id].usage for one in sent]
    assert [one.id for one in sent if told[one.id].written is not None] == ["d", "e"]


class Answering:
    """Stands for the store: every verb has the same answer."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __getattr__(self, verb: str) -> Any:
        async def carry_out(*arguments: Any) -> Any:
            if isinstance(self._answer, Exception):
                raise self._answer
            return self._answer

        return carry_out

    def close(self) -> None:
        """There is no left claim."""


async def answered(answer: Any, verb: str, *arguments: Any) -> Any:
    """What a child gets for its call."""
    ours, theirs = socket.socketpair()
    server = wire.WireServer(cast("WorkerPort", Answering(answer)))
    await asyncio.get_running_loop().create_unix_connection(lambda: server, sock=ours)
    serving, client = asyncio.create_task(server.serve()), await wire.WireClient.over(theirs)
    try:
        return await getattr(client, verb)(*arguments)
    finally:
        client.close()
        await serving


async def test_claims_are_transmitted_unchanged() -> None:
    claimed = Claimed([Claim("x", 1, 2, 1, 0, 0, 3, 3, None, "send", '{"to":"a"}', None, 3, 3)], frozenset({1, 2}))
    assert await answered(claimed, "claim", 1, None, UNBOUNDED) == claimed


@pytest.mark.parametrize("error", [LeaseLost("gone"), StoreUnavailable("busy"), StoreFull("full"), ValueError("a bug")])
async def test_an_error_of_the_store_is_transmitted_with_its_class(error: Exception) -> None:
    kind = RuntimeError if isinstance(error, ValueError) else type(error)
    with pytest.raises(kind, match=str(error)) as raised:
        await answered(error, "drain")
    assert type(raised.value) is kind


class SlowClaim(Answering):
    """Answers a claim once the test says so."""

    def __init__(self, answer: Any) -> None:
        super().__init__(answer)
        self.has_left_claim = False
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def claim(self, *_: Any) -> Any:
        self.asked.set()
        await self.may_answer.wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def drain(self) -> None:
        """Its answer shows that the child has read all that was sent before."""

    def make_left_claim(self, _: Sequence[Hint]) -> bool:
        return False


@pytest.mark.parametrize("answer", [Claimed([]), StoreUnavailable("away")], ids=["answered", "failed"])
async def test_a_child_gets_the_hints_of_ready_rows_combined_and_before_the_answer_to_its_claim(answer: Any) -> None:
    ours, theirs = socket.socketpair()
    store = SlowClaim(answer)
    heard: list[Hint | str] = []
    server = wire.WireServer(cast("WorkerPort", store))
    await asyncio.get_running_loop().create_unix_connection(lambda: server, sock=ours)
    serving, client = asyncio.create_task(server.serve()), await wire.WireClient.over(theirs)
    client.hear = heard.extend
    claiming = asyncio.ensure_future(client.claim(1, None, UNBOUNDED))
    claiming.add_done_callback(lambda _: heard.append("answer"))
    try:
        await store.asked.wait()
        server.tell([Ready({1: 7, 2: 5})])
        server.tell([Ready({1: 3})])
        server.tell([CancelAsked(4)])
        server.tell([Ready({3: 1}, is_look=True)])
        await client.drain()  # An answer, so that the child has read all before it.
        assert heard == [CancelAsked(4), Ready({3: 1}, is_look=True)]
        store.may_answer.set()
        await asyncio.wait([claiming])
        assert heard[2:] == [Ready({1: 3, 2: 5}), "answer"]
        server.tell([Ready({1: 9})])
        await client.drain()
        assert heard[4:] == [Ready({1: 9})]
    finally:
        client.close()
        await serving
        claiming.exception()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 40, 1000])
def test_a_stream_is_cut_into_its_frames_however_it_arrives(size: int) -> None:
    sent = [wire.call(number, "holds_more", (["x" * number],)) for number in (0, 1, 7, 100)]
    stream, frames = b"".join(sent), wire.Frames(wire.MOST_BYTES)
    came = [frame for at in range(0, len(stream), size) for frame in frames.cut(stream[at : at + size])]
    assert came == [frame[wire.LENGTH :] for frame in sent]


def test_the_beginning_of_a_frame_is_no_frame() -> None:
    assert list(wire.Frames().cut(wire.call(1, "drain", ())[:-1])) == []


def test_a_frame_that_is_too_long_is_refused_by_its_length() -> None:
    frames = wire.Frames(wire.MOST_BYTES)
    with pytest.raises(wire.TooLong, match="83,886,081 bytes"):
        list(frames.cut((wire.MOST_BYTES + 1).to_bytes(wire.LENGTH)))


async def test_an_answer_that_cannot_be_read_ends_the_child() -> None:
    """Otherwise its calls would never be answered, while its supervisor kept renewing its lease."""
    ended: list[str] = []
    client = wire.WireClient(lambda: ended.append("ended"))
    client.data_received(b"\0\0\0\x09" + bytes(9))
    assert ended == ["ended"]


async def test_a_child_that_sends_a_frame_that_is_too_long_is_killed(caplog: pytest.LogCaptureFixture) -> None:
    child = await ChildProcess.spawn([sys.executable, "-c", _SENDS])
    try:
        await child.serve_store(cast("WorkerPort", Answering(None)))
        assert await child.wait() == -signal.SIGKILL
        assert f"worker process {child.pid} sent a frame of 4,294,967,295 bytes" in caplog.text
    finally:
        child.kill()
        child.close()


_SENDS = r"""
import os, sys, time
os.write(int(sys.argv[4]), b"\xff\xff\xff\xff" + bytes(1000))
time.sleep(1000)
"""
