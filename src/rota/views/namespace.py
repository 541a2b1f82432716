"""A namespace, how long it keeps its history, and its quotas."""

from __future__ import annotations

from rota.domain.quota import NONE, Quotas
from rota.domain.retention import DAY_S, Retention
from rota.store import quota_reader, retention_reader
from rota.store.port import View
from rota.views.shape import Shape, shaped

MOST_COUNTED = 10_000


class Namespace(Shape, frozen=True):
    """`retention` is in seconds, null means forever; `hasOwnRetention` is false if the setting decides."""

    name: str
    retention: int | None
    """How many seconds ended executions are kept; null means forever."""
    has_own_retention: bool
    """Whether the namespace has a retention of its own; false if the setting decides."""
    quotas: Quotas


class Use(Shape, frozen=True):
    """The current use of a namespace. `depth` is counted up to 10,000."""

    depth: int
    """How many executions are queued, counted up to 10,000."""
    running: int
    jobs: int
    """How many jobs there are."""
    schedules: int
    """How many schedules there are."""
    tokens: int
    """How many tokens there are."""


class NamespaceDetail(Namespace, frozen=True):
    """A namespace with its quotas and what it uses of them."""

    use: Use
    """The current use of the namespace."""


def namespace(view: View, name: str, retention_days: int) -> NamespaceDetail | None:
    found = next((one for one in namespaces(view, retention_days) if one.name == name), None)
    if found is None:
        return None
    use = quota_reader.use(view, name, MOST_COUNTED)
    return shaped(NamespaceDetail, found, use=shaped(Use, use))


def retention(view: View, name: str, retention_days: int) -> int | None:
    """How many seconds the namespace keeps ended executions; None means forever."""
    return Retention(retention_days * DAY_S, retention_reader.retentions(view)).of(name) or None


def namespaces(view: View, retention_days: int) -> list[Namespace]:
    kept = Retention(retention_days * DAY_S, retention_reader.retentions(view))
    quotas = quota_reader.all_quotas(view)
    return [
        Namespace(
            name=name,
            retention=kept.of(name) or None,
            has_own_retention=own is not None,
            quotas=quotas.get(name, NONE),
        )
        for name, own in kept.namespaces.items()
    ]
