"""Repeats the output of commands and isolated jobs on the worker's standard error, where threads of the worker write.

A thread writes it, not the event loop: standard error may be a pipe whose reader is slow or has stopped. If too much
waits to be written, further lines are dropped and counted; the attempt's log has them.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
from typing import TextIO

MOST_WAITING = 1024 * 1024
"""Characters that may wait to be written."""
LAST_S = 1.0
"""How long the process waits at its exit for lines that are not written yet."""


class Echo:
    """Writes lines to `stream`, each with the job and the id of its execution before it."""

    def __init__(self, stream: TextIO, most_waiting: int = MOST_WAITING) -> None:
        self._stream = stream
        self._most_waiting = most_waiting
        self._waiting: list[str] = []
        self._size = 0
        self._left_out = 0
        self._is_over = False
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._write, name="rota-echo", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def show(self, job: str, id: str, texts: list[str]) -> None:
        """Never waits for the stream."""
        prefix = f"{job} {id}: "
        size = sum(map(len, texts)) + (len(prefix) + 1) * len(texts)
        with self._change:
            if self._size + size > self._most_waiting:
                self._left_out += len(texts)
                return
            self._waiting.append(prefix + f"\n{prefix}".join(texts) + "\n")
            self._size += size
            self._change.notify()

    def close(self) -> None:
        """Writes the waiting lines, for at most `LAST_S`."""
        with self._change:
            self._is_over = True
            self._change.notify()
        self._thread.join(LAST_S)

    def _write(self) -> None:
        while (text := self._next()) is not None:
            with contextlib.suppress(OSError, ValueError):  # The reader is gone, or the disk is full.
                self._stream.write(text)
                self._stream.flush()

    def _next(self) -> str | None:
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._left_out or self._is_over)
            if not self._waiting and not self._left_out:
                return None
            if self._left_out:
                self._waiting.append(f"({self._left_out:,} lines of jobs were left out here: `rota logs` has them)\n")
            text = "".join(self._waiting)
            self._waiting, self._size, self._left_out = [], 0, 0
            return text


_echo: Echo | None = None


def install() -> None:
    """Call this once in a process whose jobs are to be echoed."""
    global _echo
    _echo = Echo(sys.stderr)
    _echo.start()
    atexit.register(_echo.close)


def show(job: str, id: str, texts: list[str]) -> None:
    """Writes lines of a job to the standard error of the worker; does nothing in a process without `install`."""
    if _echo is not None:
        _echo.show(job, id, texts)
