"""Ending attempts: every outcome is written here, and only if the running row still has the fence of the attempt.

`finish` writes the reports of a worker. `settle` is the same for a caller that holds the running rows: the rescue of a
dead worker's executions makes the same decisions as the report of a live worker.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache
from operator import attrgetter

import msgspec

from rota.domain import breaker, error_fingerprint, job, overrides, retry, suspicion
from rota.domain.breaker import Breaker
from rota.domain.claim import Claim
from rota.domain.errors import LeaseLost
from rota.domain.lifecycle import Back, Final, Held, Later, Rules, decide
from rota.domain.outcome import (
    Cancelled,
    Error,
    Expired,
    Failed,
    GivenBack,
    Lost,
    Outcome,
    Snoozed,
    Succeeded,
    TimedOut,
)
from rota.domain.run_info import RunInfo
from rota.domain.status import Reason, Status
from rota.domain.usage import Usage, encode
from rota.ops import breakers, statistics
from rota.ops.after_end import after_end
from rota.ops.end_record import End
from rota.store.hints import Due, Ready
from rota.store.port import Tx

MOST = 800
"""Outcomes in one call: enough to be worth a commit, few enough to keep the transaction short."""
DEFAULT_RULES = Rules()
_id = attrgetter("id")
_ids = msgspec.json.Decoder(list[str]).decode
_runs = msgspec.json.Decoder(dict[str, str]).decode
_lanes = msgspec.json.Decoder(list[int]).decode


class Finished(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The report of one attempt. `jitter` is a random number in [0, 1) for the retry policy.

    `job`, if it is known, `step`, and `claim` if the attempt has not succeeded, are for the worker's log; `job` also
    spares a read of the execution if no job depends on it.

    `breakers` are those that the job relies on; `pauses` says whether it pauses itself after failures in a row. Retries
    follow the job's version in force and the execution's own overrides, whatever the worker's code says.

    `written` is the result that the job has written in a transaction of its own, if it has. Then `outcome` is what to
    write if that transaction was rolled back. `usage` is what the attempt cost, if it had a process of its own.

    The last four are for the statistics, which otherwise have to read them: the lane of the execution, when the attempt
    started, how long after its due time the execution first started, and how long after its tick.
    """

    id: str
    fence: int
    outcome: Outcome
    jitter: float = 0.5
    job: str = ""
    written: str | None = None
    usage: Usage | None = None
    claim: Claim | None = None
    breakers: tuple[Breaker, ...] = ()
    pauses: bool = False
    step: RunInfo | None = None
    lane: int = 0
    started_at: int = 0
    waited: int = 0
    late: int | None = None


def times(claim: Claim) -> tuple[int, int, int, int | None]:
    """The last four fields of a report."""
    due_at, begun_at, tick = claim.run_at, claim.first_start_at, claim.tick
    if due_at < claim.created_at:
        due_at = claim.created_at
    return claim.lane, claim.started_at, begun_at - due_at, None if tick is None else begun_at - tick


Written = tuple[list[str], list[End]]
"""The ids whose report was stale, and the executions that have ended."""


def timed(report: Finished, claim: Claim) -> Finished:
    """The report with these fields."""
    lane, started_at, waited, late = times(claim)
    return msgspec.structs.replace(report, lane=lane, started_at=started_at, waited=waited, late=late)


def finish(tx: Tx, reports: Sequence[Finished], worker: int | None = None) -> list[str]:
    """Writes the outcomes of attempts. Returns the ids whose report was stale and changed nothing.

    If `worker` is given, a report of an attempt that another worker holds is stale too.
    """
    stale, ends = _finish(tx, reports, worker)
    if any(report.breakers for report in reports):
        breakers.count(tx, _shown(reports, frozenset(stale), {end.id for end in ends if end.is_repeated}))
    return stale


def _finish(tx: Tx, reports: Sequence[Finished], worker: int | None = None) -> Written:
    simple = [report for report in reports if _is_simple(report)]
    stale, ends = _succeed(tx, simple, worker) if simple else ([], [])
    if len(simple) < len(reports):
        others = [report for report in reports if not _is_simple(report)]
        more_stale, more_ends = _settle_reports(tx, others, worker)
        order = {report.id: number for number, report in enumerate(reports)}
        stale, ends = stale + more_stale, sorted(ends + more_ends, key=lambda end: order[end.id])
    after_end(tx, ends)
    return stale, ends


def _is_simple(report: Finished) -> bool:
    """Whether there is nothing to write but the result."""
    return type(report.outcome) is Succeeded and report.written is None and report.usage is None


def _succeed(tx: Tx, reports: Sequence[Finished], worker: int | None) -> Written:
    """The common case in one step: a success ends the execution whatever its row carries, so no row need be read.

    Rows are locked in the order of their ids, as in all operations, to avoid deadlocks.
    """
    known: dict[str, Finished] = {}
    stale: list[str] = []
    for report in sorted(reports, key=_id):
        if report.id in known:
            stale.append(report.id)
        else:
            known[report.id] = report
    fences = {id: report.fence for id, report in known.items()}
    results = {id: report.outcome.result for id, report in known.items()}  # type: ignore[union-attr]
    ending = {"status": Status.SUCCESS.value, "reason": Reason.COMPLETED.value, "worker": worker}
    written = {"ids": list(known), "fences": fences, "results": results}
    late, runs, lanes = _ended(tx.records("finish_successes", tuple, **written, **ending)[0])
    for id in late:
        del known[id]
    # A forged lane would count in the statistics of another namespace. Without the report they read the true one.
    is_true = sorted(lanes) == sorted([report.lane for report in known.values()])
    success, completed = Status.SUCCESS, Reason.COMPLETED  # Once: Python 3.11 looks up enum members slowly.
    ends = [
        End(id, success, completed, not report.pauses, runs.get(id), report.job, report if is_true else None)
        for id, report in known.items()
    ]
    return stale + late, ends


def _ended(row: tuple[str | None, ...]) -> tuple[list[str], dict[str, str], list[int]]:
    """The ids of stale reports, the runs of steps, and the lanes. PostgreSQL has no value for an empty list."""
    stale, runs, lanes = row
    return _ids(stale or "[]"), _runs(runs or "{}"), _lanes(lanes or "[]")


def _settle_reports(tx: Tx, reports: Sequence[Finished], worker: int | None) -> Written:
    """Reads the running rows, and writes the outcomes of those that this worker holds with this fence.

    A job that completed in a transaction of its own has no running row any more. Its report is stale, but `after_end`
    follows once more, because the hints of that transaction may not have been sent. While the transaction is open, its
    row is locked and skipped: the transaction ends the execution, or a reconciliation gives it back. A report without a
    running row is checked against the finished one, because a job can forge it.
    """
    rows: list[Held] = []
    for statement, is_written in (("held", False), ("held_free", True)):
        if ids := [report.id for report in reports if (report.written is not None) is is_written]:
            rows += tx.records(statement, Held, ids=ids)
    held = {row.id: row for row in rows}
    stale, ends, current = [], [], []
    for report in reports:
        row = held.pop(report.id, None)
        if row is not None and row.fence == report.fence and worker in (None, row.worker):
            current.append((row, report))
            continue
        stale.append(report.id)
        if row is None and report.written is not None and _was_completed(tx, report, worker):
            ends.append(End(report.id, Status.SUCCESS, Reason.COMPLETED, not report.pauses, is_repeated=True))
    shared = [row for row, report in current if isinstance(report.outcome, Lost) and report.outcome.shared]
    if shared:
        tx.run("suspect", rows=suspicion.after_death(shared, with_supervisor=False))
    return stale, _settle(tx, current) + ends


def _was_completed(tx: Tx, report: Finished, worker: int | None) -> bool:
    """Whether a transaction of the job has ended its execution, in this attempt and on this worker."""
    found = tx.one("outcome_of", id=report.id, fence=report.fence)
    return found is not None and found[0] == Status.SUCCESS and worker in (None, found[1])


def _shown(reports: Sequence[Finished], stale: frozenset[str], completed: Set[str]) -> list[breakers.Shown]:
    """For the breakers: whether each attempt shows that its services work. A stale report counts only if a transaction
    of the job has ended the attempt (`completed`)."""
    return [
        (report.id, report.breakers, True if report.id in completed else breaker.shown(report.outcome))
        for report in reports
        if report.breakers and (report.id not in stale or report.id in completed)
    ]


def complete(tx: Tx, report: Finished) -> None:
    """Ends one attempt in a transaction of its job. Raises if the attempt is stale: the transaction must roll back."""
    stale, _ = _finish(tx, [report])
    if stale:
        raise LeaseLost(
            f"attempt {report.fence} of execution {report.id} is no longer the one that counts: its effects must be "
            "rolled back"
        )


def has_landed(tx: Tx, id: str, fence: int) -> bool | None:
    """Whether an attempt has ended its execution with success; None while a transaction is open that may do so."""
    found = tx.one("outcome_of", id=id, fence=fence)
    if found is not None:
        return bool(found[0] == Status.SUCCESS.value)
    free = tx.records("held_free", Held, ids=[id])
    return False if free and free[0].fence == fence else None


def settle(tx: Tx, attempts: Sequence[tuple[Held, Finished]]) -> list[End]:
    """Moves running rows to where their outcomes send them, and returns those that have ended.

    The caller has made sure that the fences are current.
    """
    ends = _settle(tx, attempts)
    after_end(tx, ends)
    return ends


def _settle(tx: Tx, attempts: Sequence[tuple[Held, Finished]]) -> list[End]:
    """`settle` without `after_end`."""
    if not attempts:
        return []
    batch, rules = _Batch(tx.now), _rules(tx, attempts)
    for row, report in attempts:
        batch.add(row, report, rules.get(row.id, DEFAULT_RULES))
    tx.run("finish", ended=batch.attempts, ids=[row.id for row, _ in attempts])
    if batch.ready:
        tx.run("return_ready", rows=batch.ready)
        tx.tell(Ready.of((row[1], row[2]) for row in batch.ready))
    if batch.scheduled:
        tx.run("return_scheduled", rows=batch.scheduled)
        tx.tell(Due(min(row[2] for row in batch.scheduled)))
    if batch.dead:
        tx.run("bury", rows=batch.dead)
    if batch.retried:
        statistics.count_retries(tx, batch.retried)
    return batch.ends


def _rules(tx: Tx, attempts: Sequence[tuple[Held, Finished]]) -> dict[str, Rules]:
    """The rules of the executions that may run again: of the job's version in force, with the execution's overrides."""
    ids = [row.id for row, report in attempts if isinstance(report.outcome, Failed | TimedOut | Snoozed)]
    if not ids:
        return {}
    found = tx.rows("rules_of", ids=ids, lowest=min(ids), highest=max(ids))
    return {id: overrides.applied(_stated(definition), stored) for id, definition, stored in found}


@lru_cache(maxsize=1000)
def _stated(definition: str) -> Rules:
    """The retry policy and the total timeout of a stored definition."""
    about = job.decode(definition)
    policy = retry.described(about.retry) if about.retry else retry.DEFAULT
    return Rules(retry=policy, total_timeout_s=about.total_timeout_s)


class _Batch:
    """Rows to write, gathered from decisions."""

    def __init__(self, now: int) -> None:
        self._now = now
        self.attempts: list[tuple[object, ...]] = []
        self.ready: list[tuple[str, int, int, int, int, int, int | None, str | None]] = []
        self.scheduled: list[tuple[str, int, int, int, int, int, int | None, str]] = []
        self.dead: list[tuple[str, str, str | None]] = []
        self.retried: list[str] = []
        self.ends: list[End] = []

    def add(self, row: Held, report: Finished, rules: Rules) -> None:
        move = decide(row, report.outcome, rules, self._now, report.jitter)
        attempts, crashes, kind = row.attempts, row.crashes, _kind(report.outcome)
        first_start_at = None if _never_began(row, report.outcome) else row.first_start_at
        match move:
            case Final():
                kind = move.status.value
                attempts += isinstance(report.outcome, Succeeded | Failed | TimedOut)
                crashes += isinstance(report.outcome, Lost) and not report.outcome.shared
                is_plain = move.status is Status.SUCCESS and not report.pauses
                times = report if report.lane == row.lane else None
                self.ends.append(End(row.id, move.status, move.reason, is_plain, row.run, report.job, times))
                if move.status is Status.FAILED and row.run is None:  # The dead letter of a failed step is its run.
                    error = _error(report.outcome)
                    found = None if error is None else error_fingerprint.of(error)
                    self.dead.append((row.id, move.reason.value, found))
            case Later(attempts=attempts):
                if attempts > row.attempts:
                    self.retried.append(row.id)
                later = (row.id, row.lane, move.run_at, row.fence, attempts, crashes, first_start_at)
                self.scheduled.append((*later, move.reason.value))
            case Back(crashes=crashes):
                place = (row.id, row.lane, row.rank)
                self.ready.append((*place, row.fence, attempts, crashes, first_start_at, row.run))
        self._attempt(row, report, int(isinstance(move, Final)), kind, move.reason.value, attempts, crashes)

    def _attempt(
        self, row: Held, report: Finished, final: int, status: str, reason: str, attempts: int, crashes: int
    ) -> None:
        outcome = report.outcome
        usage = None if report.usage is None else encode(report.usage)
        result = outcome.result if isinstance(outcome, Succeeded) else None
        error = _error(outcome)
        written = None if error is None else msgspec.json.encode(error).decode()
        started_at = None if isinstance(outcome, Expired) else row.started_at
        worker = None if isinstance(outcome, Expired) else row.worker
        self.attempts.append(
            (row.id, row.fence, final, status, reason, attempts, crashes, worker, started_at, result, written, usage)
        )


def _never_began(row: Held, outcome: Outcome) -> bool:
    """Whether the execution's body has never run yet, in this attempt or before."""
    return (
        isinstance(outcome, GivenBack)
        and outcome.reason in (Reason.NOT_HELD, Reason.NOT_BEGUN)
        and row.first_start_at == row.started_at
    )


def _kind(outcome: Outcome) -> str:
    """The status in the history of an attempt that does not end its execution."""
    match outcome:
        case Snoozed():
            return "snoozed"
        case GivenBack():
            return "given_back"
        case Lost():
            return "lost"
        case Failed() | TimedOut() | Succeeded() | Cancelled() | Expired():
            return "failed"


def _error(outcome: Outcome) -> Error | None:
    return getattr(outcome, "error", None)
