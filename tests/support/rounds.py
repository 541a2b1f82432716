"""Jobs that depend on others, and short words for running them one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rota.domain.claim import Claim
from rota.domain.dependency import CountedEnd, Upstream
from rota.domain.job import Definition
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Outcome, Succeeded
from rota.domain.schedule import Spec
from rota.ops import deploy
from rota.store.dependencies import edges
from tests.support.world import APP, NAMESPACE, NO_RETRY, World

ONCE = NO_RETRY.retry.describe()
BOTH = {"extract": "success", "rates": "success"}


def depending(name: str, upstreams: Mapping[str, str], **about: Any) -> Definition:
    """A job; an upstream of another app is written with its app and a slash."""
    found = []
    for one, outcome in upstreams.items():
        app, _, job = one.rpartition("/")
        found.append(Upstream(app or APP, job, CountedEnd(outcome)))
    return Definition(name=name, retry=ONCE, depends_on=sorted(found), **about)


def deployed(
    world: World,
    definitions: Mapping[str, Definition],
    app: str = APP,
    schedules: Mapping[str, Spec] | None = None,
    namespace: str = NAMESPACE,
) -> int:
    """A worker whose code has these jobs."""
    jobs, ticks = list(definitions.values()), schedules or {}
    number = world.store.transact(deploy.declare, namespace, app, jobs, [], ticks, takes_precedence=True)
    return world.join(lease_s=1e6, app=app, namespace=namespace, deploy=number)


class Rounds:
    """`load` depends on `extract` and `rates`."""

    def __init__(self, world: World, upstreams: Mapping[str, str] = BOTH, **about: Any) -> None:
        self.world = world
        self.worker = 0
        self.deploy(depending("load", upstreams, **about))

    def deploy(self, *definitions: Definition, schedules: Mapping[str, Spec] | None = None) -> None:
        """A worker of a deploy with these jobs, and `extract` and `rates`."""
        plain = [depending(name, {}) for name in ("extract", "rates", "send")]
        self.worker = deployed(self.world, {one.name: one for one in [*plain, *definitions]}, APP, schedules or {})

    def claim(self, job: str, app: str = APP) -> Claim:
        self.world.clock.advance(0.01)
        (attempt,) = self.world.claim(self.worker if app == APP else self.world.join(app=app), jobs=[job], app=app)
        return attempt

    def run(self, job: str, outcome: Outcome = Succeeded("1"), rules: Rules = NO_RETRY, **options: Any) -> str:  # noqa: B008
        """One execution of a job, from its enqueue to its end; of `load`, the one that was placed."""
        self.world.clock.advance(0.01)  # Ids that are made later are higher.
        if job != "load":
            self.world.enqueue(job, **options)
        attempt = self.claim(job, options.get("app", APP))
        self.world.finish(attempt, outcome, rules)
        return attempt.id

    def placed(self, job: str = "load") -> list[str]:
        """The executions of `load` so far, oldest first."""
        return sorted(self.world.executions(job=job))

    def met(self) -> dict[str, str | None]:
        return {edge.upstream: edge.met for edge in self.world.store.read(edges, NAMESPACE)}
