"""Copies what a job prints or logs in this process to its own log, whichever thread or task it runs in."""

from __future__ import annotations

import io
import logging
import sys
import threading
from contextvars import ContextVar
from typing import Any, TextIO, cast

from rota.executors.attempt_state import AttemptState

MOST_PENDING = 8192
current: ContextVar[AttemptState | None] = ContextVar("rota_attempt", default=None)
"""The attempt that the running code belongs to."""
_OUTPUT_ERRORS = (OSError, ValueError)
"""Errors of the worker's own output: its reader is gone, or its disk is full. No job fails because of those."""


def install() -> None:
    """Once for a process, after its logging is set up."""
    sys.stdout = cast("TextIO", _Tee(sys.stdout, "stdout"))
    sys.stderr = cast("TextIO", _Tee(sys.stderr, "stderr"))
    logging.getLogger().addHandler(_Handler())


def finish(attempt: AttemptState) -> None:
    """Writes the last line of an attempt that has ended, if it has no line break."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Tee):
            stream.finish(attempt)


class _Tee(io.TextIOBase):
    """A stream that also adds the lines to the log of the attempt that writes them."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._pending: dict[AttemptState, str] = {}
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        attempt = current.get()
        if attempt is None or not isinstance(text, str):
            return self._stream.write(text)
        if attempt.notes is not None and text:
            self._add(attempt, text)
        try:
            self._stream.write(text)
        except UnicodeError:
            raise
        except _OUTPUT_ERRORS:
            pass
        return len(text)

    def finish(self, attempt: AttemptState) -> None:
        if attempt in self._pending and (rest := self._pending.pop(attempt, "")):
            attempt.write_log(self._name, rest)

    def _add(self, attempt: AttemptState, text: str) -> None:
        """Logs complete lines and keeps an unfinished one: `print` writes a text and its newline in two calls."""
        with self._lock:
            *lines, rest = (self._pending.pop(attempt, "") + text).split("\n")
            if len(rest) > MOST_PENDING:
                lines.append(rest)
            elif rest:
                attempt.spoke = True
                self._pending[attempt] = rest
        _log(attempt, self._name, lines)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except UnicodeError:
            raise
        except _OUTPUT_ERRORS:
            if current.get() is None:
                raise

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Only flushes: other attempts and the worker's own log use the stream too."""
        self.flush()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors

    def __getattr__(self, name: str) -> Any:
        """The stream's own. Its `buffer` too: bytes are not copied to the log, only text."""
        return getattr(self._stream, name)


class _Handler(logging.Handler):
    """Adds records to the log of the attempt in which they are logged."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Takes no lock, unlike the method of logging: the receiver of the lines has its own."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        attempt = current.get()
        if attempt is None or attempt.notes is None:
            return
        try:
            text = f"{record.levelname} {record.name}: {record.getMessage()}"
            if record.exc_info:
                text += "\n" + (logging.Formatter().formatException(record.exc_info))
        except Exception:  # The arguments do not fit the message: other handlers report that.
            return
        _log(attempt, "log", text.splitlines())


def _log(attempt: AttemptState, stream: str, lines: list[str]) -> None:
    if len(lines) == 1:
        attempt.write_log(stream, lines[0])
    else:
        attempt.write_lines(stream, lines)
