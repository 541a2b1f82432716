"""SQLite and fork: a process must not fork while a connection is open.

SQLite keeps the locks of a file in the memory of the process, and the child of a fork gets a copy of it. A connection
that the child opens relies on locks that only the parent holds: it writes into a WAL that the parent may delete when it
closes, which loses committed data; and if the parent was writing during the fork, the child finds the file locked for
ever. So before a fork every store waits until no thread uses its connections, closes them, and opens them again when
they are next needed. The child's copy of a store stays closed.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """A store that prepares for a fork."""

    gate: Gate

    def let_go(self) -> None:
        """Closes every connection; the next use opens them again."""

    def abandon(self) -> None:
        """In the child: marks its copy of the store as closed."""


class Gate:
    """Counts the threads that use the connections, and can be shut until they have left. `with gate:` is one use."""

    def __init__(self) -> None:
        # The bare lock is entered faster than the condition. A signal handler may use the store, too.
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._inside: list[int] = []
        self._is_shut = False

    def __enter__(self) -> None:
        with self._lock:
            while self._is_shut:
                self._change.wait()
            self._inside.append(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside.remove(threading.get_ident())
            if self._is_shut:
                self._change.notify_all()

    def shut(self) -> bool:
        """Waits until no thread is inside; False, at once, if the calling thread itself is."""
        with self._change:
            self._is_shut = True
            while self._inside:
                if threading.get_ident() in self._inside:
                    return False
                self._change.wait()
        return True

    def open(self) -> None:
        with self._change:
            self._is_shut = False
            self._change.notify_all()


stores: weakref.WeakSet[Forkable] = weakref.WeakSet()
"""The open stores of this process."""


def _before() -> None:
    for store in list(stores):
        if store.gate.shut():
            store.let_go()


def _in_parent() -> None:
    for store in list(stores):
        store.gate.open()


def _in_child() -> None:
    for store in list(stores):
        store.gate = Gate()
        store.abandon()
    stores.clear()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
