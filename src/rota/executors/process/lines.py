"""The output of a process, read from a pipe as lines. Reading never blocks, and only the last lines are kept."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

CHUNK = 1 << 16
MOST_CHUNKS = 1 << 16
MOST_LINE = 8192
LAST_LINES = 50
MOST_LAST = 16 * 1024

Write = Callable[[str, list[str]], None]


class Lines:
    """One pipe. The process gets the end `writing`. `write` gets the lines while it is set. A long line is cut."""

    def __init__(self, stream: str, write: Write | None = None, keep: Callable[[bytes], None] | None = None) -> None:
        self.stream = stream
        self.write = write
        self._keep = keep
        self._reading, self.writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reading, False)
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._is_cut = False
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._loop.add_reader(self._reading, self._read)

    def opened(self) -> None:
        """Closes this process's copy of the writing end, so that the end of the output is seen."""
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def drain(self) -> None:
        """Reads the available output; an unfinished line counts as one. Does not wait for the end of the pipe."""
        self.take()
        if self._rest:
            self._give([self._ended(b"")])

    def take(self) -> None:
        """Reads the available output. An unfinished line is kept until its end comes."""
        for _ in range(MOST_CHUNKS):
            if not self._read():
                break

    def last(self, room: int = MOST_LAST) -> str:
        """The last lines, as many as fit into `room` characters."""
        kept: list[str] = []
        for line in reversed(self._last):
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        return "\n".join(reversed(kept))

    def forget(self) -> None:
        """Forgets the last lines."""
        self._last.clear()

    def close(self) -> None:
        self.opened()
        self._close_reading()

    def _read(self) -> bool:
        """Reads one piece; returns False if there is none."""
        if self._reading < 0:
            return False
        try:
            piece = os.read(self._reading, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        if not piece:
            self._close_reading()
            return False
        if self._keep is not None:
            self._keep(piece)
        end = piece.rfind(b"\n") + 1
        if end:
            self._give(self._lines(piece[:end]))
        self._extend(piece[end:] if end else piece)
        return True

    def _close_reading(self) -> None:
        if self._reading >= 0:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            self._reading = -1

    def _give(self, texts: list[str]) -> None:
        self._last.extend(texts[-LAST_LINES:])
        if self.write is not None:
            self.write(self.stream, texts)

    def _lines(self, piece: bytes) -> list[str]:
        """The complete lines. Usually all of them are short and valid UTF-8, and are decoded at once."""
        begun: list[str] = []
        if self._rest:
            end, _, piece = piece.partition(b"\n")
            begun.append(self._ended(end))
        texts = _plain(piece)
        if texts is None:
            texts = [self._ended(end) for end in piece.split(b"\n")[:-1]]
        return begun + texts if begun else texts

    def _ended(self, end: bytes) -> str:
        """Completes the unfinished line."""
        self._extend(end)
        text = self._rest.removesuffix(b"\r").decode(errors="replace")
        if self._is_cut:
            text += "…"
        self._rest = b""
        self._is_cut = False
        return text

    def _extend(self, data: bytes) -> None:
        room = MOST_LINE - len(self._rest)
        self._is_cut = self._is_cut or len(data) > room
        self._rest += data[:room]


def last_of(out: Lines, error: Lines) -> str:
    """The last lines of both outputs; each has its name above it if neither is empty."""
    if not (on_out := out.last(MOST_LAST // 2)) or not (on_error := error.last(MOST_LAST // 2)):
        return error.last() or out.last()
    return f"--- {out.stream}\n{on_out}\n--- {error.stream}\n{on_error}"


def _plain(piece: bytes) -> list[str] | None:
    """The decoded lines; None if one may be too long or is not UTF-8, so that each has to be examined."""
    try:
        texts = piece.decode().split("\n")
    except UnicodeDecodeError:
        return None
    texts.pop()
    longest = max(map(len, texts), default=0)
    if longest > MOST_LINE or (longest > MOST_LINE // 4 and not piece.isascii()):
        return None
    return [text.removesuffix("\r") for text in texts] if b"\r" in piece else texts
