"""A namespace and how long it keeps its history."""

from __future__ import annotations

from rota.domain.retention import DAY_S, Retention
from rota.store import history
from rota.store.port import View
from rota.views.shape import Shape


class Namespace(Shape, frozen=True):
    """`retention` is in seconds, null for ever; `hasOwnRetention` is false if the setting decides."""

    name: str
    retention: int | None
    has_own_retention: bool


def namespaces(view: View, retention_days: int) -> list[Namespace]:
    kept = Retention(retention_days * DAY_S, history.retentions(view))
    return [
        Namespace(name=name, retention=kept.of(name) or None, has_own_retention=own is not None)
        for name, own in kept.namespaces.items()
    ]
