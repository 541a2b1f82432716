"""Workers in the database: joining, heartbeats, leaving, and what becomes of the executions that they held.

The lease is on the worker's row. A worker is declared dead in the transaction that returns its executions to the queue,
so two leases on one execution never overlap. A lease that has run out can still be renewed until its worker is declared
dead: after an outage of the database live workers continue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.domain import payload, requirement, suspicion
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import Held
from rota.domain.outcome import GivenBack, Lost
from rota.domain.requirement import STANDS_STILL, Offers
from rota.domain.status import Reason, Status
from rota.ops import deploy, finish
from rota.ops.audit import audit
from rota.store.port import Tx, operation

TO_DRAIN = "to drain"
"""The state of a worker that was asked to drain, until its supervisor reads it."""
MOST_HELD = 100_000
BEATS_PER_LEASE = 4
_UNKNOWN: Mapping[int, int] = {}


class Newcomer(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that joins."""

    namespace: str
    others: list[str] = []
    """Further namespaces, of a worker without an app."""
    app: str
    name: str
    host: str
    pid: int
    version: str
    queues: list[str] | None
    jobs: list[str]
    """The jobs that it can run, for `rota workers`. Claims do not read this column."""
    concurrency: int
    offers: Offers = Offers()
    supervisor: str = ""
    least: int = 1
    most: int = 1
    """The least and the greatest number of worker processes of its supervisor."""
    deploy: int | None = None
    """The deploy that its code declares."""


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """An execution that ended as failed because its worker died."""

    id: str
    job: str
    reason: str


class WorkerEnd(msgspec.Struct, frozen=True):
    """How many executions a worker held when it stopped, and how many of them run again or have failed."""

    held: int
    returned: int
    failed: int = 0
    cause: str = ""
    asked_by: str = ""
    """Who asked the worker to drain. Written when that is asked, and kept when the worker stops."""


_decode_end = msgspec.json.Decoder(WorkerEnd).decode


class Death(msgspec.Struct, frozen=True):
    """How many executions dead workers held, and those of them that do not run again."""

    executions: int = 0
    failures: list[Failure] = []


def join(tx: Tx, newcomer: Newcomer, lease_s: float) -> int:
    """Inserts a worker with a lease of its own, and applies its deploy if that should be in force now."""
    values = msgspec.structs.asdict(newcomer)
    values["others"] = msgspec.json.encode(newcomer.others).decode()
    values["queues"] = msgspec.json.encode(newcomer.queues).decode()
    values["jobs"] = msgspec.json.encode(sorted(newcomer.jobs)).decode()
    values["offers"] = requirement.encode(newcomer.offers)
    worker = int(tx.rows("add_worker", **values, lease=_microseconds(lease_s))[0][0])
    if newcomer.deploy is not None:
        deploy.settle(tx, newcomer.namespace, newcomer.app, lease_s)
    return worker


@operation(is_urgent=True, is_repeatable=True)
def beat(tx: Tx, workers: Sequence[int], lease_s: float, memory: Mapping[int, int] = _UNKNOWN) -> dict[int, str]:
    """Renews the leases of the workers that were not declared dead, and returns these with their state.

    `memory` are the bytes that workers have in use, as far as that is known.
    """
    period = max(1, _microseconds(lease_s / BEATS_PER_LEASE))
    about = {"workers": list(workers), "memory": list(memory.items())}
    return dict(tx.rows("beat", **about, lease=_microseconds(lease_s), period=period))


def drain(tx: Tx, worker: int) -> None:
    """The worker claims no more, and may finish the executions that it holds."""
    tx.run("set_worker_state", worker=worker, state="draining")


def ask_to_drain(tx: Tx, namespace: str, worker: int, actor: str) -> bool:
    """The worker claims no more, finishes its executions and stops. Its supervisor reads that with the next heartbeat.

    False if the worker drains already or has stopped.
    """
    if not tx.changed("ask_to_drain", worker=worker, namespace=namespace, asked=TO_DRAIN):
        return False
    _note_end(tx, worker, WorkerEnd(held=0, returned=0, asked_by=str(actor)))
    audit(tx, namespace, actor, "worker.drain", str(worker))
    return True


def leave(tx: Tx, worker: int, reason: Reason = Reason.DRAINED) -> None:
    """The worker stops, and none of its executions is to blame: it was drained, or its supervisor ended it.

    Executions that it still holds return to the queue at once.
    """
    if tx.one("lock_worker", worker=worker) is None:
        return
    held = _held(tx, worker)
    finish.settle(tx, [(row, _report(row, GivenBack(reason))) for row in held])
    tx.run("stop_worker", worker=worker, state="stopped")
    _note_end(tx, worker, WorkerEnd(held=len(held), returned=len(held)))


def declare_dead(tx: Tx, worker: int, cause: str, *, with_supervisor: bool = False) -> Death:
    """The worker has died: its executions return to the queue, or end as failed after too many crashes.

    If it held one execution, that one is charged with the crash. If it held several, none is charged: all are suspects.
    `with_supervisor`: its supervisor has died too.
    """
    if tx.one("lock_worker", worker=worker) is None:
        return Death()
    tx.run("stop_worker", worker=worker, state="lost")
    held = _held(tx, worker)
    outcome = Lost(payload.error("WorkerLost", cause), shared=len(held) > 1)
    if outcome.shared:
        tx.run("suspect", rows=suspicion.after_death(held, with_supervisor=with_supervisor))
    ends = finish.settle(tx, [(row, _report(row, outcome)) for row in held])
    failed = [end.id for end in ends if end.status is Status.FAILED]
    _note_end(tx, worker, WorkerEnd(len(held), len(held) - len(ends), len(failed), cause))
    return Death(len(held), tx.records("failures", Failure, ids=failed) if failed else [])


def reconcile(tx: Tx, worker: int, named: Sequence[str], in_doubt: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Returns executions to the queue that the worker does not know it holds, because the reply to its claim was lost.

    The first time that the worker does not name an attempt, the reply may still be on its way: the attempt is in doubt.
    The second time it is given back. Returns the attempts in doubt for the next call, as (id, fence).
    """
    known, again = set(named), set(in_doubt)
    held = tx.rows("attempts_of_worker", worker=worker, most=MOST_HELD)
    unnamed = [(id, fence) for id, fence in held if id not in known]
    lost = [id for id, fence in unnamed if (id, fence) in again]
    gone = [row for row in tx.records("held", Held, ids=lost) if (row.id, row.fence) in again] if lost else []
    finish.settle(tx, [(row, _report(row, GivenBack(Reason.NOT_HELD))) for row in gone])
    return [attempt for attempt in unnamed if attempt not in again]


def tell_trouble(tx: Tx, worker: int, reasons: Mapping[str, str]) -> None:
    """Records why the worker cannot start processes, by what the processes are for; without reasons, that it can."""
    tx.run("set_trouble", worker=worker, trouble=msgspec.json.encode(reasons).decode() if reasons else None)


def tell_standstill(tx: Tx, worker: int, why: str) -> None:
    """Called by the supervisor of a worker process that does not run; with an empty `why` when it runs again."""
    row = tx.one("trouble_of", worker=worker)
    reasons = msgspec.json.decode(row[0], type=dict[str, str]) if row is not None and row[0] else {}
    others = {what: reason for what, reason in reasons.items() if what != STANDS_STILL}
    tell_trouble(tx, worker, {**others, STANDS_STILL: why} if why else others)


def _note_end(tx: Tx, worker: int, end: WorkerEnd) -> None:
    row = tx.one("end_of_worker", worker=worker)
    if row is not None and row[0]:
        asked_by = _decode_end(row[0]).asked_by
        end = msgspec.structs.replace(end, asked_by=end.asked_by or asked_by)
    tx.run("set_worker_end", worker=worker, ended=msgspec.json.encode(end).decode())


def _held(tx: Tx, worker: int) -> list[Held]:
    return tx.records("held_by_worker", Held, worker=worker, most=MOST_HELD)


def _report(row: Held, outcome: GivenBack | Lost) -> finish.Finished:
    return finish.Finished(row.id, row.fence, outcome)


def _microseconds(seconds: float) -> int:
    return round(seconds * MICROSECONDS)
