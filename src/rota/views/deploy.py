"""A deploy: the set of declarations that workers of an app have."""

from __future__ import annotations

from datetime import datetime

from rota.store.deploys import all_deploys
from rota.store.port import View
from rota.views.shape import Shape, shaped


class Deploy(Shape, frozen=True):
    """`workers` are live; `jobs` and `schedules` count its declarations."""

    app: str
    deploy: int
    is_in_force: bool
    workers: int
    jobs: int
    schedules: int
    first_seen_at: datetime
    last_started_at: datetime
    digest: str


def deploys(view: View, namespace: str) -> list[Deploy]:
    """By app, the one with the highest precedence first."""
    return [
        shaped(
            Deploy,
            row,
            deploy=row.number,
            jobs=len(row.declared.jobs),
            schedules=len(row.declared.schedules),
            first_seen_at=row.created_at,
            last_started_at=row.declared_at,
        )
        for row in all_deploys(view, namespace)
    ]
