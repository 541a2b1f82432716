"""Ends waits that nothing else would end.

A server, or a network, that took our question and never answers is seen by no timeout of TCP as long as somebody
acknowledges the bytes. So whoever waits says until when, and a thread of ours hangs up after that. The one who waits
then gets an error as from any broken connection.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

from rota.clock import MACHINE

LOOK_S = 0.5


class Watched(Protocol):
    """A connection with somebody who waits."""

    give_up_at: float | None

    def cut(self) -> None: ...


class _Watch:
    """One thread for the process, as long as there is something to watch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: weakref.WeakSet[Watched] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, watched: Watched) -> None:
        with self._lock:
            self._watched.add(watched)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rota-watch", daemon=True)
                self._thread.start()

    def remove(self, watched: Watched) -> None:
        with self._lock:
            self._watched.discard(watched)

    def _run(self) -> None:
        pause = threading.Event()
        while self._look():
            pause.wait(LOOK_S)

    def _look(self) -> bool:
        """False if nothing is left; the next one to be watched starts another thread."""
        with self._lock:
            watched = list(self._watched)
            if not watched:
                self._thread = None
                return False
        now = MACHINE.monotonic()
        for one in watched:
            if one.give_up_at is not None and now >= one.give_up_at:
                one.cut()
        return True


_watch = _Watch()


def watch(watched: Watched) -> None:
    _watch.add(watched)


def forget(watched: Watched) -> None:
    _watch.remove(watched)


def in_seconds(seconds: float) -> float:
    """The instant until which to wait, for `give_up_at`."""
    return MACHINE.monotonic() + seconds


def _start_anew() -> None:
    """After a fork: threads do not come along, and what they watched belongs to the parent."""
    global _watch
    _watch = _Watch()


os.register_at_fork(after_in_child=_start_anew)
