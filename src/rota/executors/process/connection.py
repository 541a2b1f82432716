"""The socket between a worker process and a process for isolated jobs: its messages, and both of its ends.

A message has a head with its length. The job process has its end at a low descriptor, where user code can write by
mistake: bytes that are no message are recognised by their first byte.
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

import msgspec

from rota.domain.claim import Claim
from rota.domain.note import State
from rota.domain.outcome import Outcome
from rota.domain.usage import Usage

log = logging.getLogger("rota.engine")

MOST_BYTES = 64 * 1024 * 1024
PIECE = 1 << 16
_HEAD = struct.Struct("!BI")
_FIRST = 0xC1
"""The first byte of each message: neither text in UTF-8 nor a value of msgpack begins with it."""
MOST_LENGTH = 2**32 - 1
_NO_MESSAGE = (msgspec.DecodeError, ValueError, RecursionError)
STOPPED = 79
"""The exit code of a process that was asked to stop, and did."""


class Call(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """To the process: run this."""

    claim: Claim
    deadline: int | None
    slice_s: float | None = None


class Stop(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """To the process: the SIGTERM that follows is from the worker. No message comes after it."""


class Spent(msgspec.Struct, frozen=True, array_like=True):
    """What a process has cost before a call, and how large it is: the call is not charged with that."""

    cpu_s: float = 0.0
    rss_bytes: int = 0
    children_bytes: int = 0
    """The peak of one of its children that have ended."""
    is_past_peak: bool = False
    """Whether it has held more than it does now, alone or with its children."""


class Ready(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: the app is loaded, or `error` says why it cannot be."""

    error: str = ""
    spent: Spent = Spent()


class Told(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: the progress or the checkpoint of the running attempt."""

    state: State


class Wrote(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: a line for the log of the running attempt."""

    stream: str
    text: str


class Answer(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: the outcome of the call, its cost, and the cost of all calls so far.

    `spoilt` says what the job has left behind, if the process must not be used again.
    """

    outcome: Outcome
    usage: Usage
    spent: Spent
    written: str | None = None
    spoilt: str = ""


Message = Call | Stop | Ready | Told | Wrote | Answer
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    body = msgspec.msgpack.encode(message)
    return _HEAD.pack(_FIRST, len(body)) + body


_STOP = encode(Stop())


def send(end: socket.socket, message: Message) -> None:
    end.sendall(encode(message))


class Inbox:
    """Puts messages together from pieces."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rest = bytearray()
        self._wanted = 0

    def completed(self, piece: bytes) -> list[Message]:
        """The messages that are complete with this piece. Raises DecodeError if it holds something else."""
        if self._rest:
            self._rest += piece
            if len(self._rest) < self._wanted:
                return []
            piece, self._rest = bytes(self._rest), bytearray()
        found: list[Message] = []
        at = 0
        while (end := self._end(piece, at)) <= len(piece):
            found.append(_decoder.decode(memoryview(piece)[at + _HEAD.size : end]))
            at = end
        self._rest += piece[at:]
        self._wanted = end - at
        return found

    def _end(self, piece: bytes, at: int) -> int:
        """The end of the message that begins at `at`, or of its head while that is not complete."""
        body = at + _HEAD.size
        if at < len(piece) and piece[at] != _FIRST:
            raise msgspec.DecodeError("no message begins like that")
        if len(piece) < body:
            return body
        _, length = _HEAD.unpack_from(piece, at)
        if length > self._most_bytes:
            raise msgspec.DecodeError(f"a message of {length:,} bytes")
        return body + int(length)


def take_connection() -> socket.socket:
    """Moves the connection off standard input, where user code could read messages away."""
    fd = os.dup(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    return socket.socket(fileno=fd)


class Caller:
    """The end of the job process, which blocks until there is a message."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._inbox = Inbox(most_bytes=MOST_LENGTH)
        self._heard: deque[Message] = deque()

    def next(self) -> Message | None:
        """The next message; None at the end of the connection."""
        while not self._heard:
            piece = self._end.recv(PIECE)
            if not piece:
                return None
            self._heard.extend(self._inbox.completed(piece))
        return self._heard.popleft()

    def is_told_to_stop(self) -> bool:
        """Whether the last message is `Stop`, or the worker is gone. Reads nothing away; may interrupt `next`."""
        if self._heard:
            return isinstance(self._heard[-1], Stop)
        try:
            ahead = self._end.recv(PIECE, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return not ahead or ahead.endswith(_STOP) or len(ahead) == PIECE  # There is more than was read.


class Channel:
    """The worker's end. Calls `heard` for every message, and `ended` once, after the last one. Never blocks.

    Not an asyncio stream: a message is acted upon in the callback that reads it, without a task in between.
    """

    def __init__(self, end: socket.socket, heard: Callable[[Message], None], ended: Callable[[], None]) -> None:
        self._end = end
        self._heard = heard
        self._ended = ended
        self._inbox = Inbox()
        self._unsent = bytearray()
        self._loop = asyncio.get_running_loop()
        self.is_open = True
        self.problem = ""
        """What was wrong with the last message, if that has ended the connection."""
        end.setblocking(False)
        self._loop.add_reader(end, self._read)

    def send(self, message: Message) -> None:
        """Sends what the socket takes now, and the rest as soon as it can."""
        data = encode(message)
        if self._unsent:
            self._unsent += data
        elif self.is_open and (count := self._sent(data)) < len(data):
            self._unsent += memoryview(data)[count:]
            self._loop.add_writer(self._end, self._flush)

    def close(self) -> None:
        """No message is heard any more, and not the end either."""
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._end)
            self._loop.remove_writer(self._end)
            self._end.close()

    def _read(self) -> None:
        try:
            piece = self._end.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        try:
            for message in self._inbox.completed(piece):
                self._heard(message)
        except Exception as error:  # It may be anything. No message can be found after it.
            is_ours = not isinstance(error, _NO_MESSAGE)
            log.warning(
                "a process for isolated jobs is ended, because it sent what is no message: %s", error, exc_info=is_ours
            )
            self.problem, piece = str(error) or type(error).__name__, b""
        if not piece and self.is_open:
            self.close()
            self._ended()

    def _sent(self, data: bytes | bytearray) -> int:
        try:
            return self._end.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # The other side is gone, which is about to be read.

    def _flush(self) -> None:
        del self._unsent[: self._sent(self._unsent)]
        if not self._unsent:
            self._loop.remove_writer(self._end)
