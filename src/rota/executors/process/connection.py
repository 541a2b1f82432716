"""The socket between a worker process and a process for isolated jobs: its messages, and both of its ends.

Each message follows a head of four bytes, its length.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import cast

import msgspec

from rota.domain.claim import Claim
from rota.domain.note import State
from rota.domain.outcome import Outcome
from rota.domain.usage import Usage

log = logging.getLogger("rota.engine")

MOST_BYTES = 256 * 1024 * 1024
"""The most bytes of one message: a call holds the arguments and a checkpoint, each of which may take 64 MB."""
PIECE = 1 << 16
_HEAD = struct.Struct("!I")
STOPPED = 79
"""The exit code of a process that was asked to stop, and did."""


class Call(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """To the process: run this claim."""

    claim: Claim
    deadline: int | None
    slice_s: float | None = None


class Stop(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """To the process: the SIGTERM that follows is from the worker. No message comes after it."""


class Spent(msgspec.Struct, frozen=True, array_like=True):
    """The processor time and the size of a process before a call, which are not counted for the call."""

    cpu_s: float = 0.0
    rss_bytes: int = 0


class Ready(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: the app is loaded, or `error` says why it could not be loaded."""

    error: str = ""
    spent: Spent = Spent()


class NewState(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: the progress or the checkpoint of the running attempt."""

    state: State


class LogLine(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: a line for the log of the running attempt."""

    stream: str
    text: str


class Answer(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: the outcome of the call, its cost, and the cost of all calls so far.

    `leftover` names what the job has left behind, if the process must not be used again.
    """

    outcome: Outcome
    usage: Usage
    spent: Spent
    written: str | None = None
    leftover: str = ""


Message = Call | Stop | Ready | NewState | LogLine | Answer
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    body = msgspec.msgpack.encode(message)
    return _HEAD.pack(len(body)) + body


_STOP = encode(Stop())


def send(end: socket.socket, message: Message) -> None:
    end.sendall(encode(message))


class Inbox:
    """Puts messages together from pieces."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def completed(self, piece: bytes) -> list[Message]:
        """The messages that are complete with this piece. Raises DecodeError if it holds something else."""
        rest = self._rest
        rest += piece
        found: list[Message] = []
        start = 0
        while len(rest) >= start + _HEAD.size:
            (length,) = _HEAD.unpack_from(rest, start)
            if length > MOST_BYTES:
                raise msgspec.DecodeError(f"a message of {length:,} bytes")
            body = start + _HEAD.size
            if len(rest) < body + length:
                break
            start = body + length
            found.append(_decoder.decode(rest[body:start]))
        del rest[:start]
        return found


def take_connection() -> socket.socket:
    """Moves the connection off standard input, where user code could consume its messages."""
    fd = os.dup(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    return socket.socket(fileno=fd)


class Caller:
    """The end of the job process, which blocks until there is a message."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._inbox = Inbox()
        self._received: deque[Message] = deque()

    def next(self) -> Message | None:
        """The next message; None at the end of the connection."""
        while not self._received:
            piece = self._end.recv(PIECE)
            if not piece:
                return None
            self._received.extend(self._inbox.completed(piece))
        return self._received.popleft()

    def is_stop_announced(self) -> bool:
        """Whether the last message is `Stop`, or the worker is gone. Consumes no message; may interrupt `next`."""
        if self._received:
            return isinstance(self._received[-1], Stop)
        try:
            ahead = self._end.recv(PIECE, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return not ahead or ahead.endswith(_STOP) or len(ahead) == PIECE  # There is more than was read.


class Channel(asyncio.Protocol):
    """The worker's end. Calls `received` for every message, and `ended` once, after the last one. Never blocks."""

    _transport: asyncio.Transport

    def __init__(self, received: Callable[[Message], None], ended: Callable[[], None]) -> None:
        self._received = received
        self._ended = ended
        self._inbox = Inbox()
        self.is_open = True

    async def open(self, end: socket.socket) -> None:
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=end)

    def send(self, message: Message) -> None:
        self._transport.write(encode(message))

    def close(self) -> None:
        """After this, neither `received` nor `ended` is called."""
        self.is_open = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._inbox.completed(data):
                self._received(message)
        except Exception as error:  # A job can write to the connection. No message can be found after its bytes.
            log.warning("a process for isolated jobs sent a broken message and is ended: %s", error, exc_info=True)
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self.is_open:
            self.is_open = False
            self._ended()
