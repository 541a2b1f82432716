"""Messages between a worker and its processes: they arrive complete, in any fragments, and none is lost."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import msgspec
import pytest

from rota.executors.process import connection
from rota.executors.process.connection import Channel, Inbox, LogLine, Message, Ready, Stop
from tests.support.waiting import PATIENCE_S

MESSAGES: list[Message] = [LogLine("log", "x" * size) for size in (0, 1, 30, 300, 3)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 64, 10_000])
def test_messages_are_decoded_from_any_fragments(size: int) -> None:
    data, inbox = b"".join(map(connection.encode, MESSAGES)), Inbox()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert [message for piece in pieces for message in inbox.completed(piece)] == MESSAGES


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\0\0\0\1\xc1", b"\0\0\0\0", b"hello"])
def test_malformed_messages_are_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        Inbox().completed(data)


class Ear:
    """Records the messages of a channel."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.ends = 0
        self.ended = asyncio.Event()

    def end(self) -> None:
        self.ends += 1
        self.ended.set()


async def opened(end: socket.socket, heard: Callable[[Message], None], ended: Callable[[], None]) -> Channel:
    channel = Channel(heard, ended)
    await channel.open(end)
    return channel


async def test_a_channel_delivers_messages_and_then_its_end_once() -> None:
    ours, theirs = socket.socketpair()
    ear = Ear()
    channel = await opened(ours, ear.heard.append, ear.end)
    for message in MESSAGES:
        connection.send(theirs, message)
    theirs.close()
    await asyncio.wait_for(ear.ended.wait(), PATIENCE_S)
    channel.send(Ready())
    channel.close()
    assert (ear.heard, ear.ends, channel.is_open) == (MESSAGES, 1, False)


@pytest.mark.parametrize("rubbish", [b"\xff" * 4, b"hello", connection.encode(Ready("?")).replace(b"?", b"\xff")])
async def test_malformed_data_ends_a_channel(rubbish: bytes) -> None:
    ours, theirs = socket.socketpair()
    ear = Ear()
    channel = await opened(ours, ear.heard.append, ear.end)
    with theirs:
        theirs.sendall(connection.encode(MESSAGES[0]) + rubbish)
        await asyncio.wait_for(ear.ended.wait(), PATIENCE_S)
    assert (ear.ends, channel.is_open) == (1, False)


async def test_an_unexpected_message_ends_a_channel() -> None:
    def fail(message: Message) -> None:
        raise KeyError(message)

    ours, theirs = socket.socketpair()
    ear = Ear()
    await opened(ours, fail, ear.end)
    with theirs:
        connection.send(theirs, MESSAGES[0])
        await asyncio.wait_for(ear.ended.wait(), PATIENCE_S)
    assert ear.ends == 1


def test_a_busy_process_can_check_whether_it_was_asked_to_stop() -> None:
    ours, theirs = socket.socketpair()
    caller, call = connection.Caller(theirs), connection.encode(LogLine("log", "for a call"))
    with theirs:
        assert not caller.is_stop_announced()
        ours.sendall(call)
        assert not caller.is_stop_announced(), "a call is no request to stop"
        assert caller.next() is not None
        connection.send(ours, Stop())
        assert caller.is_stop_announced()
        assert caller.is_stop_announced(), "the check removes no message"
        assert caller.next() == Stop()
        ours.sendall(call + connection.encode(Stop()))
        assert caller.next() is not None
        assert caller.is_stop_announced(), "also a request that arrived together with the call"
        assert caller.next() == Stop()
        ours.close()
        assert caller.is_stop_announced(), "the other side has closed"


async def test_a_channel_sends_more_than_the_socket_buffer_without_blocking() -> None:
    ours, theirs = socket.socketpair()
    sent = [LogLine("log", letter * 3_000_000) for letter in "abc"]
    channel = await opened(ours, lambda _: None, lambda: None)
    for message in sent:
        channel.send(message)
    with theirs:
        caller = connection.Caller(theirs)
        heard = [await asyncio.to_thread(caller.next) for _ in sent]
        channel.close()
        assert heard == sent
        assert await asyncio.to_thread(caller.next) is None
