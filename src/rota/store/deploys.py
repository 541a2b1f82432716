"""Reads deploys for people: `rota deploys` and `rota doctor`."""

from __future__ import annotations

from functools import cached_property

import msgspec

from rota.domain import deploy
from rota.domain.deploy import Declared
from rota.store.port import View


class DeployRow(msgspec.Struct, array_like=True, dict=True):
    """A deploy and how many live workers declare it; `content` is JSON."""

    app: str
    number: int
    digest: str
    created_at: int
    declared_at: int
    content: str
    in_force: int
    workers: int
    live_since: int | None
    """When the first of its live workers started."""

    @property
    def is_in_force(self) -> bool:
        return self.in_force == 1

    @cached_property
    def declared(self) -> Declared:
        return deploy.decode(self.content)


def all_deploys(view: View, namespace: str) -> list[DeployRow]:
    """Sorted by app; the deploy with the highest precedence first."""
    return view.records("deploys", DeployRow, namespace=namespace)
