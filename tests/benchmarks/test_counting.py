"""What a benchmark counts as ended: executions, not attempts."""

from __future__ import annotations

from pathlib import Path

from benchmarks.database_sqlite import SqliteDatabase
from rota.domain.outcome import GivenBack, Outcome, Succeeded
from rota.domain.served import Served
from rota.domain.status import Reason
from rota.ops import claim, finish, fleet
from rota.ops.finish import Finished
from rota.sdk.app import registry_of

WORKER = fleet.Newcomer(
    namespace="default", app="bench", name="w", host="", pid=1, version="", queues=None, jobs=["noop"], concurrency=3
)
SERVED = Served.one("default", "bench", None, ["noop"])


def test_attempts_that_a_stopping_worker_gave_back_are_not_counted_as_ended(tmp_path: Path) -> None:
    """A worker that is stopped between two figures gives back what it had prefetched."""
    database = SqliteDatabase(tmp_path)
    try:
        database.fill(4)
        store = registry_of(database.jobs.app).connection.store()
        worker = store.transact(fleet.join, WORKER, 60.0)
        taken = store.transact(claim.claim, worker, SERVED, 3).claims
        outcomes: list[Outcome] = [Succeeded(), GivenBack(Reason.NOT_BEGUN), GivenBack(Reason.NOT_BEGUN)]
        reports = [Finished(one.id, one.fence, outcome) for one, outcome in zip(taken, outcomes, strict=True)]
        store.transact(finish.finish, reports)
        assert database.ended() == database.count("finished") == 1
        again = store.transact(claim.claim, worker, SERVED, 3).claims
        store.transact(finish.finish, [Finished(one.id, one.fence, Succeeded()) for one in again])
        assert database.ended() == database.count("finished") == 4
    finally:
        database.close()
