"""SQLite and fork: a connection must not be open in the process that forks.

SQLite keeps the locks of a file in the memory of the process, and a child starts with a copy of it. A connection that
the child opens then believes in locks that only the parent holds: it writes into a log that the parent may delete
when it closes, which loses what was accepted, and if the parent was writing at the moment of the fork the child finds
the file locked for ever. So before a fork every store waits until nobody is inside, closes its connections, and opens
them again when they are next needed; the child's copy of a store is closed for good.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Protocol


class Forkable(Protocol):
    """What a store does about a fork."""

    gate: Gate

    def let_go(self) -> None:
        """Closes every connection; the next use opens them again."""

    def abandon(self) -> None:
        """This is the child's copy, which must not be used."""


class Gate:
    """Counts who is inside, and can be shut until everybody has left."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._inside: list[int] = []
        self._is_shut = False

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        me = threading.get_ident()
        with self._change:
            while self._is_shut:
                self._change.wait()
            self._inside.append(me)
        try:
            yield
        finally:
            with self._change:
                self._inside.remove(me)
                self._change.notify_all()

    def shut(self) -> bool:
        """Waits until nobody is inside; False, at once, if the caller itself is."""
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


_stores: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(store: Forkable) -> None:
    _stores.add(store)


def forget(store: Forkable) -> None:
    _stores.discard(store)


def _before() -> None:
    for store in list(_stores):
        if store.gate.shut():
            store.let_go()


def _in_parent() -> None:
    for store in list(_stores):
        store.gate.open()


def _in_child() -> None:
    for store in list(_stores):
        store.gate = Gate()
        store.abandon()
    _stores.clear()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
