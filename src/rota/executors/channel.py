"""The worker's end of the connection to a process: tells what comes as it comes, and never waits to send.

Not asyncio's streams: what is heard is acted upon in the same turn of the event loop, without a task in between.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

import msgspec

from rota.executors import frames
from rota.executors.frames import Inbox, Message

log = logging.getLogger("rota.engine")
_NO_MESSAGE = (msgspec.DecodeError, ValueError, RecursionError)


class Channel:
    """Calls `heard` for every message, and `ended` once, after the last one."""

    def __init__(self, end: socket.socket, heard: Callable[[Message], None], ended: Callable[[], None]) -> None:
        self._end = end
        self._heard = heard
        self._ended = ended
        self._inbox = Inbox()
        self._unsent = bytearray()
        self._loop = asyncio.get_running_loop()
        self.is_open = True
        self.problem = ""
        """Why nothing more is heard, if that is not because the other side has hung up."""
        end.setblocking(False)
        self._loop.add_reader(end, self._read)

    def send(self, message: Message) -> None:
        """Now what the socket takes, and the rest as soon as it can."""
        data = frames.encode(message)
        if self._unsent:
            self._unsent += data
        elif self.is_open and (count := self._sent(data)) < len(data):
            self._unsent += memoryview(data)[count:]
            self._loop.add_writer(self._end, self._flush)

    def close(self) -> None:
        """Nothing is heard any more, not even the end."""
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._end)
            self._loop.remove_writer(self._end)
            self._end.close()

    def _read(self) -> None:
        try:
            piece = self._end.recv(frames.PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        try:
            for message in self._inbox.completed(piece):
                self._heard(message)
        except Exception as error:  # There are many ways to be no message. What comes after it would not be understood.
            is_ours = not isinstance(error, _NO_MESSAGE)
            log.warning("a process with jobs has to end for what came from it: %s", error, exc_info=is_ours)
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
            return len(data)  # The other side is gone, which is about to be heard.

    def _flush(self) -> None:
        del self._unsent[: self._sent(self._unsent)]
        if not self._unsent:
            self._loop.remove_writer(self._end)
