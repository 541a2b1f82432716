"""Copies what a job prints or logs in this process to its own log, whichever thread or task it runs in."""

from __future__ import annotations

import io
import logging
import sys
import threading
from contextvars import ContextVar
from typing import Any, TextIO

from rota.executors.context import Context

MOST_PENDING = 8192
current: ContextVar[Context | None] = ContextVar("rota_attempt", default=None)
"""The attempt that the running code belongs to."""
_OUTPUT_ERRORS = (OSError, ValueError)
"""Errors of the worker's own output: its reader is gone, or its disk is full. No job fails because of those."""


def install() -> None:
    """Once for a process, after its logging is set up."""
    sys.stdout = _Tee(sys.stdout, "stdout")
    sys.stderr = _Tee(sys.stderr, "stderr")
    logging.getLogger().addHandler(_Handler())


def finish(context: Context) -> None:
    """Writes the last line of an attempt that has ended, if it has no line break."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Tee):
            stream.finish(context)


class _Tee(io.TextIOBase):
    """A stream that also adds the lines to the log of the attempt that writes them."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._pending: dict[Context, str] = {}
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        context = current.get()
        if context is None or not isinstance(text, str):
            return self._stream.write(text)
        if context.notes is not None:
            if "\n" in text or len(text) > MOST_PENDING:
                self._take(context, text)
            elif text:
                self._keep(context, text)
        try:
            self._stream.write(text)
        except UnicodeError:
            raise
        except _OUTPUT_ERRORS:
            pass
        return len(text)

    def finish(self, context: Context) -> None:
        if context in self._pending and (rest := self._pending.pop(context, "")):
            context.write_log(self._name, rest)

    def _keep(self, context: Context, text: str) -> None:
        """A part of a line: `print` writes several, and the end of the line apart."""
        with self._lock:
            text = self._pending.get(context, "") + text
            if len(text) <= MOST_PENDING:
                context.spoke = True
                self._pending[context] = text
                return
            del self._pending[context]
        context.write_log(self._name, text)

    def _take(self, context: Context, text: str) -> None:
        with self._lock:
            before = self._pending.pop(context, "")
            if text == "\n":
                lines = [before]
            else:
                *lines, rest = (before + text).split("\n")
                if len(rest) > MOST_PENDING:
                    lines.append(rest)
                elif rest:
                    context.spoke = True
                    self._pending[context] = rest
        if len(lines) == 1:
            context.write_log(self._name, lines[0])
        else:
            context.write_lines(self._name, lines)

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

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors

    @property
    def buffer(self) -> Any:
        """Bytes are not copied to the log, only text."""
        return self._stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Handler(logging.Handler):
    """Adds records to the log of the attempt in which they are logged."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Without a lock: the receiver of the lines has one."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        context = current.get()
        if context is None or context.notes is None:
            return
        try:
            text = f"{record.levelname} {record.name}: {record.getMessage()}"
            if record.exc_info:
                text += "\n" + (logging.Formatter().formatException(record.exc_info))
        except Exception:  # The arguments do not fit the message: other handlers report that.
            return
        lines = text.splitlines()
        if len(lines) == 1:
            context.write_log("log", lines[0])
        else:
            context.write_lines("log", lines)
