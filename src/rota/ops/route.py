"""Where the executions of a job go: the version in force, and the lane of the job in a queue."""

from __future__ import annotations

import msgspec

from rota.domain.rank import Policy
from rota.store.port import Tx


class Route(msgspec.Struct, frozen=True):
    """The columns of an execution that its job and its queue decide, and how the queue orders and limits them."""

    namespace: str
    app: str
    job: str
    queue: str
    job_version: int = 0
    lane: int = 0
    policy: Policy = Policy.PRIORITY
    max_depth: int | None = None


def find(tx: Tx, namespace: str, app: str, job: str, queue: str) -> Route | None:
    """None if no process has declared the job. The first execution for a queue that no definition names adds it."""
    where = {"namespace": namespace, "app": app, "job": job, "queue": queue}
    found = tx.one("route", **where)
    if found is None and _add_lane(tx, namespace, app, job, queue):
        found = tx.one("route", **where)
    if found is None:
        return None
    version, lane, policy, max_depth = found
    return Route(namespace, app, job, queue, version, lane, Policy(policy), max_depth)


def _add_lane(tx: Tx, namespace: str, app: str, job: str, queue: str) -> bool:
    """Whether the job is known, so that it has a lane now."""
    known = tx.one("requirements_of", namespace=namespace, app=app, job=job)
    if known is not None:
        tx.run("add_queues", namespace=namespace, queues=[(queue,)])
        tx.run("add_lanes", namespace=namespace, app=app, lanes=[(job, queue, known[0])])
    return known is not None
