"""A receiver of hints inside the process that sends them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence

from rota.store.hints import Hint, merged


class PipeListener:
    """Implements `rota.store.hints.Listener` with a list of hints, and a pipe that becomes readable."""

    def __init__(self, kinds: Sequence[type[Hint]], forget: Callable[[PipeListener], None]) -> None:
        self._kinds = tuple(kinds)
        self._forget = forget
        self._lock = threading.Lock()
        self._hints: list[Hint] = []
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        self._is_closed = False

    def fileno(self) -> int:
        return self._out

    def put(self, hints: Sequence[Hint]) -> None:
        news = [hint for hint in hints if isinstance(hint, self._kinds)]
        if not news:
            return
        with self._lock:
            if self._is_closed:
                return
            if not self._hints:
                with contextlib.suppress(BlockingIOError):
                    os.write(self._in, b"!")
            self._hints = merged([*self._hints, *news]) if self._hints else news

    def take(self) -> list[Hint]:
        with self._lock:
            with contextlib.suppress(BlockingIOError):
                os.read(self._out, 4096)
            hints, self._hints = self._hints, []
        return merged(hints)

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            os.close(self._out)
            os.close(self._in)
        self._forget(self)
