"""What every connection does alike when it runs named statements as a `View` or a `Tx`."""

from __future__ import annotations

from typing import Any

from rota.domain.instant import MICROSECONDS
from rota.store.hints import Hint
from rota.store.port import Row

MOST_REMEMBERED = 1000


class Session:
    """The part that does not depend on the database. The owner opens and ends the transactions."""

    waits = True

    def __init__(self) -> None:
        self._remembered: dict[tuple[Any, ...], tuple[int, list[Any]]] = {}
        self.now = 0
        self.hints: list[Hint] = []

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        raise NotImplementedError

    def one(self, name: str, /, **params: Any) -> Row | None:
        found = self.rows(name, **params)
        return found[0] if found else None

    def tell(self, hint: Hint) -> None:
        self.hints.append(hint)

    def recent(self, name: str, max_age_s: float, /, **params: Any) -> list[Any]:
        key = (name, *params.values())
        known = self._remembered.get(key)
        if known is None or not 0 <= self.now - known[0] <= max_age_s * MICROSECONDS:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[key] = (self.now, list(self.one(name, **params) or ()))
        return known[1]

    def forget(self) -> None:
        """An operation was undone: what it adjusted in remembered rows did not happen."""
        self._remembered.clear()
