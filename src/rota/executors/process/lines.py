"""What a process writes to a pipe, as lines: read as it comes, never waited for, and never more than a little kept."""

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
    """One pipe. `writing` is for the process; `write` gets the lines, as long as it is set. A long line is cut."""

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
        """The process has its end of the pipe: ours of it is closed, so that we see the end."""
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def drain(self) -> None:
        """Takes what is there now, and what has no end yet as a line. Does not wait: others may hold the other end."""
        self.take()
        if self._rest:
            self._give([self._ended(b"")])

    def take(self) -> None:
        """Takes what is there now. What has no end yet waits for it."""
        for _ in range(MOST_CHUNKS):
            if not self._read():
                break

    def last(self, room: int = MOST_LAST) -> str:
        """The last lines, as many as there is room for."""
        kept: list[str] = []
        for line in reversed(self._last):
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        return "\n".join(reversed(kept))

    def forget(self) -> None:
        """What was written until now is not among the last lines of what comes."""
        self._last.clear()

    def close(self) -> None:
        self.opened()
        self._hang_up()

    def _read(self) -> bool:
        """One piece; False if there is none."""
        if self._reading < 0:
            return False
        try:
            piece = os.read(self._reading, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        if not piece:
            self._hang_up()
            return False
        if self._keep is not None:
            self._keep(piece)
        end = piece.rfind(b"\n") + 1
        if end:
            self._give(self._lines(piece[:end]))
        self._extend(piece[end:] if end else piece)
        return True

    def _hang_up(self) -> None:
        if self._reading >= 0:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            self._reading = -1

    def _give(self, texts: list[str]) -> None:
        self._last.extend(texts[-LAST_LINES:])
        if self.write is not None:
            self.write(self.stream, texts)

    def _lines(self, piece: bytes) -> list[str]:
        """The lines that are complete. Mostly there is nothing odd in them, and they are decoded in one go."""
        begun: list[str] = []
        if self._rest:
            end, _, piece = piece.partition(b"\n")
            begun.append(self._ended(end))
        texts = _plain(piece)
        if texts is None:
            texts = [self._ended(end) for end in piece.split(b"\n")[:-1]]
        return begun + texts if begun else texts

    def _ended(self, end: bytes) -> str:
        """A line is complete: what has come of it before, and its end."""
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
    """What a process wrote last to either; each under its name if there is something of both."""
    if not (said := out.last(MOST_LAST // 2)) or not (complained := error.last(MOST_LAST // 2)):
        return error.last() or out.last()
    return f"--- {out.stream}\n{said}\n--- {error.stream}\n{complained}"


def _plain(piece: bytes) -> list[str] | None:
    """Whole lines as they are; None if one might be too long, or cannot be decoded, and each needs a look."""
    try:
        texts = piece.decode().split("\n")
    except UnicodeDecodeError:
        return None
    texts.pop()
    longest = max(map(len, texts), default=0)
    if longest > MOST_LINE or (longest > MOST_LINE // 4 and not piece.isascii()):
        return None
    return [text.removesuffix("\r") for text in texts] if b"\r" in piece else texts
