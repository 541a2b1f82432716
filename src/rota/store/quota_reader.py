"""Reads the quotas of a namespace, and what it uses of them."""

from __future__ import annotations

import msgspec

from rota.domain import quota
from rota.domain.quota import Quotas
from rota.store.port import View


class Use(msgspec.Struct, frozen=True, array_like=True):
    """The current use of a namespace."""

    depth: int
    running: int
    jobs: int
    schedules: int
    tokens: int


def quotas(view: View, namespace: str) -> Quotas:
    found = view.one("quotas_of", namespace=namespace)
    return quota.decode(found[0] if found else None)


def all_quotas(view: View) -> dict[str, Quotas]:
    """The quotas of each namespace that has some."""
    return {name: quota.decode(text) for name, text in view.rows("all_quotas")}


def use(view: View, namespace: str, most: int = 2**53) -> Use:
    """Queued executions are counted up to `most`."""
    (found,) = view.records("quota_use", Use, namespace=namespace, most=most)
    return found


def depth(view: View, namespace: str, most: int) -> int:
    """Queued executions, counted up to `most`."""
    (found,) = view.rows("namespace_depth", namespace=namespace, most=most)
    return int(found[0])
