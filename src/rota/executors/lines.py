"""What a process writes to a pipe, as lines: read as it comes, never waited for, and never more than a little kept."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable

CHUNK = 1 << 16
MOST_LINE = 8192
LAST_LINES = 50
MOST_LAST = 16 * 1024


class Lines:
    """One pipe. `writing` is for the process; `write` gets each line, as long as it is set."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.write: Callable[[str, str], None] | None = None
        self._reading, self.writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reading, False)
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self.is_open = True
        self._loop.add_reader(self._reading, self._read)

    def opened(self) -> None:
        """The process has its end of the pipe: ours of it is closed, so that we see the end."""
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def drain(self) -> None:
        """Reads what is there now, up to a line that is not complete."""
        while self.is_open and self._read():
            pass
        self._finish_line()

    def last(self) -> list[str]:
        """The last lines, newest last, not too much of them."""
        kept: list[str] = []
        size = 0
        for line in reversed(self._last):
            size += len(line) + 1
            if size > MOST_LAST:
                break
            kept.append(line)
        return kept[::-1]

    def close(self) -> None:
        self.opened()
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._reading)
            os.close(self._reading)

    def _read(self) -> bool:
        """One piece; False if there is none."""
        try:
            piece = os.read(self._reading, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        if not piece:
            self._finish_line()
            with contextlib.suppress(OSError):
                self.close()
            return False
        *complete, self._rest = (self._rest + piece).split(b"\n")
        for line in complete:
            self._give(line)
        while len(self._rest) > MOST_LINE:
            line, self._rest = self._rest[:MOST_LINE], self._rest[MOST_LINE:]
            self._give(line)
        return True

    def _finish_line(self) -> None:
        if self._rest:
            line, self._rest = self._rest, b""
            self._give(line)

    def _give(self, line: bytes) -> None:
        text = line[:MOST_LINE].decode(errors="replace").rstrip("\r")
        self._last.append(text)
        if self.write is not None:
            self.write(self.stream, text)
