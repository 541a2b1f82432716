"""What a job prints or logs in this process goes to its own log too, whichever thread or task it runs in."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, TextIO

from rota.executors.context import Context

MOST_PENDING = 8192
current: ContextVar[Context | None] = ContextVar("rota_attempt", default=None)
"""The attempt that the running code belongs to."""


def install() -> None:
    """Once for a process, after its logging is set up."""
    sys.stdout = _Tee(sys.stdout, "stdout")
    sys.stderr = _Tee(sys.stderr, "stderr")
    logging.getLogger().addHandler(_Handler())


def finish(context: Context) -> None:
    """The attempt has ended: a line without an end is a line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Tee):
            stream.finish(context)


class _Tee(io.TextIOBase):
    """A stream that also gives lines to the attempt that writes them. All else is the stream's own."""

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
            self._take(context, text)
        with _unharmed():
            self._stream.write(text)
        return len(text)

    def finish(self, context: Context) -> None:
        if context in self._pending and (rest := self._pending.pop(context, "")):
            context.write_log(self._name, rest)

    def _take(self, context: Context, text: str) -> None:
        with self._lock:
            *lines, rest = (self._pending.pop(context, "") + text).split("\n")
            if len(rest) > MOST_PENDING:
                lines, rest = [*lines, rest], ""
            if rest:
                context.spoke = True
                self._pending[context] = rest
        for line in lines:
            context.write_log(self._name, line)

    def flush(self) -> None:
        with _unharmed() if current.get() is not None else contextlib.nullcontext():
            self._stream.flush()

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
        """Bytes go past us: only text is kept."""
        return self._stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _unharmed() -> Iterator[None]:
    """The worker's own output may lead nowhere any more: its reader is gone, its disk is full. No job fails by that."""
    try:
        yield
    except UnicodeError:
        raise
    except (OSError, ValueError):
        pass


class _Handler(logging.Handler):
    """Gives records to the attempt in which they are logged."""

    def emit(self, record: logging.LogRecord) -> None:
        context = current.get()
        if context is None or context.notes is None:
            return
        try:
            text = f"{record.levelname} {record.name}: {record.getMessage()}"
            if record.exc_info:
                text += "\n" + (logging.Formatter().formatException(record.exc_info))
        except Exception:  # Somebody else's arguments do not fit their message: the others will say so.
            return
        for line in text.splitlines():
            context.write_log("log", line)
