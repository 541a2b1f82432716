"""Workers as the database knows them: joining, heartbeats, leaving, and what becomes of what they held.

The lease is on the worker's row. Whoever declares a worker dead does so in the transaction that gives its executions to
others, so two leases on one execution never overlap. A lease that has run out may still be renewed as long as nobody
has declared its worker dead: after an outage of the database the living go on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import payload, requirement, suspicion
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import Held
from rota.domain.outcome import GivenBack, Lost
from rota.domain.requirement import Offers
from rota.domain.status import Reason, Status
from rota.ops import deploy, finish
from rota.ops.audit import audit
from rota.store.port import Tx, operation

TO_DRAIN = "to drain"
"""The state of a worker that somebody has asked to drain, and that does not know yet."""
MOST_HELD = 1000


class Newcomer(msgspec.Struct, frozen=True, kw_only=True):
    """Who a worker is."""

    namespace: str
    app: str
    name: str
    host: str
    pid: int
    version: str
    queues: list[str] | None
    jobs: list[str]
    """The jobs that it can run; the row says so for those who look, claims do not read it."""
    concurrency: int
    offers: Offers = Offers()
    supervisor: str = ""
    least: int = 1
    most: int = 1
    """How few and how many processes its supervisor may have."""
    deploy: int | None = None
    """The deploy that its code declares."""


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """An execution that ended for good with the death of its worker."""

    id: str
    job: str
    reason: str


class Death(msgspec.Struct, frozen=True):
    """What dead workers held: how many executions, and those of them that are not started again."""

    executions: int = 0
    failures: list[Failure] = []


def join(tx: Tx, newcomer: Newcomer, lease_s: float) -> int:
    """Inserts a worker with a lease of its own, and applies its deploy if that should be in force now."""
    values = msgspec.structs.asdict(newcomer)
    values["queues"] = msgspec.json.encode(newcomer.queues).decode()
    values["jobs"] = msgspec.json.encode(sorted(newcomer.jobs)).decode()
    values["offers"] = requirement.encode(newcomer.offers)
    worker = int(tx.rows("add_worker", **values, lease=_microseconds(lease_s))[0][0])
    if newcomer.deploy is not None:
        deploy.settle(tx, newcomer.namespace, newcomer.app, lease_s)
    return worker


@operation(is_urgent=True, is_repeatable=True)
def beat(tx: Tx, workers: Sequence[int], lease_s: float) -> dict[int, str]:
    """Renews the leases of those that nobody has declared dead, and returns them with their state."""
    return dict(tx.rows("beat", workers=list(workers), lease=_microseconds(lease_s)))


def drain(tx: Tx, worker: int) -> None:
    """The worker claims no more; what it holds it may finish."""
    tx.run("set_worker_state", worker=worker, state="draining")


def ask_to_drain(tx: Tx, namespace: str, worker: int, actor: str) -> bool:
    """The worker claims no more from now on, finishes, and ends; its supervisor hears of it with its next heartbeat.

    False if it does so already, or has stopped.
    """
    if not tx.run("ask_to_drain", worker=worker, namespace=namespace, asked=TO_DRAIN):
        return False
    audit(tx, namespace, actor, "worker.drain", str(worker))
    return True


def leave(tx: Tx, worker: int, reason: Reason = Reason.DRAINED) -> None:
    """The worker stops by no fault of what it ran, in order or because its supervisor ended it.

    What it still holds goes back at once: in order there is nothing, against all expectation.
    """
    if tx.one("lock_worker", worker=worker) is None:
        return
    for rows in _held(tx, worker):
        finish.settle(tx, [(row, _report(row, GivenBack(reason))) for row in rows])
    tx.run("stop_worker", worker=worker, state="stopped")


def declare_dead(tx: Tx, worker: int, cause: str, *, whole_node: bool = False) -> Death:
    """The worker is gone without a word: its executions are lost to it.

    One that it ran alone has crashed it. Of several, none is charged: they are suspects.
    """
    if tx.one("lock_worker", worker=worker) is None:
        return Death()
    tx.run("stop_worker", worker=worker, state="lost")
    held = _held(tx, worker)
    count = sum(map(len, held))
    error = payload.error("WorkerLost", cause)
    failures: list[Failure] = []
    for rows in held:
        if count > 1:
            tx.run("suspect", rows=suspicion.after_death(rows, whole_node=whole_node))
        ends = finish.settle(tx, [(row, _report(row, Lost(error, shared=count > 1))) for row in rows])
        if failed := [end.id for end in ends if end.status is Status.FAILED]:
            failures += tx.records("failures", Failure, ids=failed)
    return Death(count, failures)


def reconcile(tx: Tx, worker: int, named: Sequence[str], suspects: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Gives back what the worker does not know that it holds, because the reply to its claim was lost.

    An attempt that the worker did not name becomes a suspect, because its claim may be on the way; a suspect that it
    did not name again goes back. Returns the suspects for the next call, as (id, fence).
    """
    known, again = set(named), set(suspects)
    held = tx.rows("attempts_of_worker", worker=worker, most=100 * MOST_HELD)
    unnamed = [(id, fence) for id, fence in held if id not in known]
    lost = [id for id, fence in unnamed if (id, fence) in again]
    gone = [row for row in tx.records("held", Held, ids=lost) if (row.id, row.fence) in again] if lost else []
    finish.settle(tx, [(row, _report(row, GivenBack(Reason.NOT_HELD))) for row in gone])
    return [attempt for attempt in unnamed if attempt not in again]


def _held(tx: Tx, worker: int) -> list[list[Held]]:
    rows = tx.records("held_by_worker", Held, worker=worker, most=100 * MOST_HELD)
    return [rows[start : start + MOST_HELD] for start in range(0, len(rows), MOST_HELD)]


def _report(row: Held, outcome: GivenBack | Lost) -> finish.Finished:
    return finish.Finished(row.id, row.fence, outcome)


def _microseconds(seconds: float) -> int:
    return round(seconds * MICROSECONDS)
