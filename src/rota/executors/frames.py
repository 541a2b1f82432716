"""What a worker and a process with a job's code say to each other: whole messages, each with its length before it."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import msgspec

from rota.domain.claim import Claim
from rota.domain.note import State
from rota.domain.outcome import Outcome
from rota.domain.usage import Usage

MOST_BYTES = 64 * 1024 * 1024
_LENGTH = struct.Struct("!I")


class Call(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """To the process: run this."""

    claim: Claim
    deadline: int | None
    slice_s: float | None = None


class Ready(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: the app is loaded. With `error` it is not, and will never be."""

    error: str = ""
    rss_bytes: int = 0


class Told(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: how far the running attempt is, or the state from which another can go on."""

    state: State


class Wrote(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: a line for the log of the running attempt."""

    stream: str
    text: str


class Answer(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: what became of the call, what that cost, and how large the process is now.

    With `is_spoilt` the next call is better made in another one.
    """

    outcome: Outcome
    usage: Usage
    rss_bytes: int
    written: str | None = None
    is_spoilt: bool = False


Message = Call | Ready | Told | Wrote | Answer
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    body = msgspec.msgpack.encode(message)
    return _LENGTH.pack(len(body)) + body


def send(end: socket.socket, message: Message) -> None:
    end.sendall(encode(message))


def receive(end: socket.socket) -> Message | None:
    """The next message; None at the end of the connection."""
    head = _exactly(end, _LENGTH.size)
    body = _exactly(end, _LENGTH.unpack(head)[0]) if head else None
    return _decoder.decode(body) if body else None


async def areceive(reader: asyncio.StreamReader) -> Message | None:
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return _decoder.decode(await reader.readexactly(length)) if length <= MOST_BYTES else None
    except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
        return None


def _exactly(end: socket.socket, count: int) -> bytes | None:
    parts: list[Any] = []
    while count:
        part = end.recv(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
