"""What a worker and a process with a job's code say to each other: whole messages, each with its length before it.

The process has its end at a low descriptor, where whatever it runs can write by mistake. What is none of these messages
is known as such at once, so that nobody waits for the rest of it.
"""

from __future__ import annotations

import socket
import struct
from collections import deque

import msgspec

from rota.domain.claim import Claim
from rota.domain.note import State
from rota.domain.outcome import Outcome
from rota.domain.usage import Usage

MOST_BYTES = 64 * 1024 * 1024
PIECE = 1 << 16
_HEAD = struct.Struct("!BI")
_FIRST = 0xC1
"""Each message begins with it, and next to nothing else does: neither text in UTF-8 nor a value of msgpack."""
MOST_LENGTH = 2**32 - 1
STOPPED = 79
"""The exit code of a process that was asked to stop, and did."""


class Call(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """To the process: run this."""

    claim: Claim
    deadline: int | None
    slice_s: float | None = None


class Stop(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """To the process: the SIGTERM that follows is meant. Nothing comes after it."""


class Spent(msgspec.Struct, frozen=True, array_like=True):
    """What a process has cost by now, between two calls, and how large it is: that is not charged to the next one."""

    cpu_s: float = 0.0
    rss_bytes: int = 0
    children_bytes: int = 0
    """The most that a process which it has started, and seen end, ever held."""
    is_past_peak: bool = False
    """Whether it has held more than it does now, alone or with those that it had started."""


class Ready(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: the app is loaded. With `error` it is not, and will never be."""

    error: str = ""
    spent: Spent = Spent()


class Told(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: how far the running attempt is, or the state from which another can go on."""

    state: State


class Wrote(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: a line for the log of the running attempt."""

    stream: str
    text: str


class Answer(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """From the process: what became of the call, what that cost, and what all calls have cost by now.

    If it is `spoilt`, by what that says, the next call is better made in another one.
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
    """Makes whole messages of what comes in pieces."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rest = bytearray()
        self._wanted = 0

    def completed(self, piece: bytes) -> list[Message]:
        """The messages whose end has come with this piece. Raises DecodeError for what is none."""
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
        """Where the message ends that begins there, as far as that is known."""
        body = at + _HEAD.size
        if at < len(piece) and piece[at] != _FIRST:
            raise msgspec.DecodeError("no message begins like that")
        if len(piece) < body:
            return body
        _, length = _HEAD.unpack_from(piece, at)
        if length > self._most_bytes:
            raise msgspec.DecodeError(f"a message of {length:,} bytes")
        return body + int(length)


class Caller:
    """The other end of the connection, for a process that has nothing to do but to wait for it."""

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
        """Whether that was said last, or nobody is there who could. Takes nothing, and may interrupt `next`."""
        if self._heard:
            return isinstance(self._heard[-1], Stop)
        try:
            ahead = self._end.recv(PIECE, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return not ahead or ahead.endswith(_STOP) or len(ahead) == PIECE  # What is so long has an end that is not seen.
