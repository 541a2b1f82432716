"""Does by hand what a worker does: claims executions of an app and ends them."""

from __future__ import annotations

from rota.domain.outcome import Outcome, Succeeded
from rota.domain.served import Served
from rota.ops import claim, finish, fleet
from rota.ops.finish import Finished
from rota.store.port import Store
from tests.support.newcomers import newcomer

DONE = Succeeded('"done"')


def work(store: Store, job: str, outcome: Outcome = DONE, app: str = "shop", count: int = 100) -> list[str]:
    """Runs what is queued of a job, and returns the ids."""
    worker = store.transact(fleet.join, newcomer(app, jobs=[job]), 60.0)
    served = Served.one("default", app, None, [job])
    claims = store.transact(claim.claim, worker, served, count).claims
    reports = [Finished(one.id, one.fence, outcome, job=one.job) for one in claims]
    store.transact(finish.finish, reports, worker)
    return [one.id for one in claims]
