"""The part of a `View` or a `Tx` that is the same on every connection, and the decoders for its records."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from rota.domain.instant import MICROSECONDS
from rota.store.hints import Hint, Ready
from rota.store.port import Row

T = TypeVar("T")
MOST_REMEMBERED = 1000
_lock = threading.Lock()
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


class Session:
    """Runs named statements inside a transaction."""

    waits = True

    def __init__(self) -> None:
        self._remembered: dict[tuple[Any, ...], tuple[int, list[Any]]] = {}
        self._now = 0
        self.hints: list[Hint] = []

    @property
    def now(self) -> int:
        return self._now

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        raise NotImplementedError

    def one(self, name: str, /, **params: Any) -> Row | None:
        found = self.rows(name, **params)
        return found[0] if found else None

    def records(self, name: str, kind: type[T], /, **params: Any) -> list[T]:
        decoder(kind)  # Prepares the type under the lock.
        return msgspec.convert(self.rows(name, **params), list[kind])  # type: ignore[valid-type]

    def run(self, name: str, /, **params: Any) -> None:
        self.changed(name, **params)

    def changed(self, name: str, /, **params: Any) -> int:
        raise NotImplementedError

    def on_table(self, name: str, table: str) -> str:
        raise NotImplementedError

    def tell(self, hint: Hint) -> None:
        self.hints.append(hint)

    def withdraw_ready(self, lanes: Mapping[int, int]) -> None:
        self.hints = [hint for one in self.hints if (hint := _without_lanes(one, lanes)) is not None]

    def recent(self, name: str, max_age_s: float, /, **params: Any) -> list[Any]:
        key = (name, *params.values())
        known = self._remembered.get(key)
        if known is None or not 0 <= self.now - known[0] <= max_age_s * MICROSECONDS:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[key] = (self.now, list(self.one(name, **params) or ()))
        return known[1]

    def forget(self) -> None:
        """Drops the remembered rows, which an operation that was rolled back may have adjusted."""
        self._remembered.clear()


def _without_lanes(hint: Hint, lanes: Mapping[int, int]) -> Hint | None:
    """The hint without the ready rows above these ranks; None if no row is left."""
    if not isinstance(hint, Ready):
        return hint
    remaining = {lane: rank for lane, rank in hint.lanes.items() if lane not in lanes or rank <= lanes[lane]}
    return Ready(remaining) if remaining else None


def decoder(kind: type[T]) -> msgspec.json.Decoder[list[T]]:
    """Decodes a JSON array of rows.

    Threads name their kinds of records at run time, so decoders are made under a lock: `domain/decoding.py` says why.
    """
    known = _decoders.get(kind)
    if known is None:
        with _lock:
            known = _decoders[kind] = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
    return known
