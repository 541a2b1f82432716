"""Ending attempts: every outcome is written here, and only if its fence is still the one that runs.

`finish` is what a worker reports. `settle` is the same for whoever already holds the running rows: the rescue of a dead
worker's executions goes through the same decisions as a report of the living.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import msgspec

from rota.domain import suspicion
from rota.domain.errors import LeaseLost
from rota.domain.lifecycle import Back, End, Held, Later, Rules, decide
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
from rota.domain.status import Reason, Status
from rota.domain.usage import Usage, encode
from rota.ops import breaking, following, pausing
from rota.store.hints import Due, Ready
from rota.store.port import Tx

MOST = 400
"""Outcomes in one call: keeps the transaction short for everybody else, and makes the commit worth its cost."""
DEFAULT_RULES = Rules()
_id = attrgetter("id")


class Finished(msgspec.Struct, frozen=True):
    """The report of one attempt. `jitter` is a random number in [0, 1) for the retry policy; `job` is for logs.

    `written` is the result that a transaction of the job's own has, if there is one. Then `outcome` is what to write
    if that transaction has come to nothing. `usage` is what it cost, if it had a process of its own.
    """

    id: str
    fence: int
    outcome: Outcome
    rules: Rules = DEFAULT_RULES
    jitter: float = 0.5
    job: str = ""
    written: str | None = None
    usage: Usage | None = None


def finish(tx: Tx, reports: Sequence[Finished]) -> list[str]:
    """Writes what became of attempts. Returns the ids whose report was stale and changed nothing."""
    stale, failed = _finish(tx, reports)
    if failed or any(report.rules.pauses for report in reports):
        _tally(tx, reports, stale, failed)
    if relying := [report for report in reports if report.rules.breakers]:
        _count(tx, relying, frozenset(stale))
    return stale


def _tally(tx: Tx, reports: Sequence[Finished], stale: Sequence[str], failed: Sequence[str]) -> None:
    """For jobs that pause themselves: which of their executions have ended, and whether in failure."""
    dead, others = frozenset(failed), frozenset(stale)
    ended = []
    for report in reports:
        if report.id in dead:
            ended.append((report.id, True))
        elif report.rules.pauses and (
            report.written is not None or (type(report.outcome) is Succeeded and report.id not in others)
        ):
            ended.append((report.id, False))
    if ended:
        pausing.count(tx, ended)


def _count(tx: Tx, reports: Sequence[Finished], stale: frozenset[str]) -> None:
    """Tells the breakers. What was stale is somebody else's, unless the job's own transaction has ended it."""
    ended = []
    for report in reports:
        is_stale = report.id in stale
        went_well = (True if report.written is not None else None) if is_stale else _went_well(report.outcome)
        if not is_stale or went_well:
            ended.append((report.rules.breakers, went_well))
    if ended:
        breaking.count(tx, reports[0].id, ended)


def _went_well(outcome: Outcome) -> bool | None:
    """Whether what it relied on works; None if this outcome says nothing of it."""
    match outcome:
        case Succeeded():
            return True
        case TimedOut():
            return False
        case Failed(reason=Reason.ERROR, permanent=permanent):
            return permanent  # What fails for good was answered: somebody is there.
        case _:
            return None


def _finish(tx: Tx, reports: Sequence[Finished]) -> tuple[list[str], list[str]]:
    """The ids of those that were stale, and of those that have failed for good."""
    written = [report for report in reports if report.written is not None]
    if written:
        reports = [report for report in reports if report.written is None]
    successes = [report for report in reports if type(report.outcome) is Succeeded and report.usage is None]
    stale = _succeed(tx, successes) if successes else []
    failed: list[str] = []
    if written:
        done, failed = _conclude(tx, written)
        stale += done
    others = [report for report in reports if type(report.outcome) is not Succeeded or report.usage is not None]
    if not others:
        return stale, failed
    rows = {row.id: row for row in tx.records("held", Held, ids=[report.id for report in others])}
    current, shared = [], []
    for report in others:
        row = rows.pop(report.id, None)
        if row is not None and row.fence == report.fence:
            current.append((row, report))
            if isinstance(report.outcome, Lost) and report.outcome.shared:
                shared.append(row)
        else:
            stale.append(report.id)
    if shared:
        tx.run("suspect", rows=suspicion.after_death(shared, whole_node=False))
    return stale, failed + settle(tx, current)


def _succeed(tx: Tx, reports: Sequence[Finished]) -> list[str]:
    """The common case in one step: a success ends the execution whatever its row carries, so no row need be read.

    Returns the ids of those that are stale. Rows are locked in the order of their ids, as everywhere.
    """
    rows: dict[str, tuple[str, int, str]] = {}
    stale = []
    for report in sorted(reports, key=_id):
        if report.id in rows:
            stale.append(report.id)
        else:
            rows[report.id] = (report.id, report.fence, report.outcome.result)  # type: ignore[union-attr]
    status, reason = Status.SUCCESS.value, Reason.COMPLETED.value
    stale += [row[0] for row in tx.rows("finish_successes", rows=list(rows.values()), status=status, reason=reason)]
    ended = rows.keys() - set(stale) if stale else rows
    if ended:
        following.ended(tx, list(ended))
    return stale


def _conclude(tx: Tx, reports: Sequence[Finished]) -> tuple[list[str], list[str]]:
    """For jobs that completed in a transaction of their own: writes only what that transaction has not ended.

    Returns the ids of those that it has ended, and of those that have failed for good. One that is still open is left
    alone, not waited for: it ends the execution, or a reconciliation gives it back.
    """
    rows = {row.id: row for row in tx.records("held_free", Held, ids=[report.id for report in reports])}
    held = {row.id: row.fence for row in rows.values()}
    failed = settle(tx, [(rows[report.id], report) for report in reports if held.get(report.id) == report.fence])
    done = [report.id for report in reports if held.get(report.id) != report.fence]
    if done:
        following.ended(tx, done)
    return done, failed


def complete(tx: Tx, report: Finished) -> None:
    """Ends one attempt in a transaction of its own job, or refuses: then that must not commit either."""
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


def settle(tx: Tx, attempts: Sequence[tuple[Held, Finished]]) -> list[str]:
    """Moves running rows to where their outcomes send them. The caller has made sure that the fences are current.

    Returns the ids of those that have failed for good.
    """
    if not attempts:
        return []
    batch = _Batch(tx.now)
    for row, report in attempts:
        batch.add(row, report)
    tx.run("finish", ended=batch.attempts, ids=[row.id for row, _ in attempts])
    if batch.ready:
        tx.run("return_ready", rows=batch.ready)
        tx.tell(Ready.of((row[1], row[2]) for row in batch.ready))
    if batch.scheduled:
        tx.run("return_scheduled", rows=batch.scheduled)
        tx.tell(Due(min(row[2] for row in batch.scheduled)))
    if batch.dead:
        tx.run("bury", rows=batch.dead)
    if batch.ended:
        following.ended(tx, batch.ended)
    return [id for id, _ in batch.dead]


class _Batch:
    """Rows to write, gathered from decisions."""

    def __init__(self, now: int) -> None:
        self._now = now
        self.attempts: list[tuple[object, ...]] = []
        self.ready: list[tuple[str, int, int, int, int, int, int | None]] = []
        self.scheduled: list[tuple[str, int, int, int, int, int, int | None, str]] = []
        self.dead: list[tuple[str, str]] = []
        self.ended: list[str] = []

    def add(self, row: Held, report: Finished) -> None:
        move = decide(row, report.outcome, report.rules, self._now, report.jitter)
        attempts, crashes, kind = row.attempts, row.crashes, _kind(report.outcome)
        first_start_at = None if _never_began(row, report.outcome) else row.first_start_at
        match move:
            case End():
                kind = move.status.value
                attempts += isinstance(report.outcome, Succeeded | Failed | TimedOut)
                crashes += isinstance(report.outcome, Lost) and not report.outcome.shared
                self.ended.append(row.id)
                if move.status is Status.FAILED:
                    self.dead.append((row.id, move.reason.value))
            case Later(attempts=attempts):
                later = (row.id, row.lane, move.run_at, row.fence, attempts, crashes, first_start_at)
                self.scheduled.append((*later, move.reason.value))
            case Back(crashes=crashes):
                self.ready.append((row.id, row.lane, row.rank, row.fence, attempts, crashes, first_start_at))
        self._attempt(row, report, int(isinstance(move, End)), kind, move.reason.value, attempts, crashes)

    def _attempt(
        self, row: Held, report: Finished, final: int, status: str, reason: str, attempts: int, crashes: int
    ) -> None:
        outcome = report.outcome
        usage = None if report.usage is None else encode(report.usage)
        result = outcome.result if isinstance(outcome, Succeeded) else None
        error = _error(outcome)
        started_at = None if isinstance(outcome, Expired) else row.started_at
        worker = None if isinstance(outcome, Expired) else row.worker
        self.attempts.append(
            (row.id, row.fence, final, status, reason, attempts, crashes, worker, started_at, result, error, usage)
        )


def _never_began(row: Held, outcome: Outcome) -> bool:
    """Whether the execution's body has never run yet, in this attempt or before."""
    return (
        isinstance(outcome, GivenBack)
        and outcome.reason in (Reason.UNKNOWN_JOB, Reason.NOT_HELD, Reason.NOT_BEGUN)
        and row.first_start_at == row.started_at
    )


def _kind(outcome: Outcome) -> str:
    """How an attempt that does not end its execution is called in the history."""
    match outcome:
        case Snoozed():
            return "snoozed"
        case GivenBack():
            return "given_back"
        case Lost():
            return "lost"
        case Failed() | TimedOut() | Succeeded() | Cancelled() | Expired():
            return "failed"


def _error(outcome: Outcome) -> str | None:
    error: Error | None = getattr(outcome, "error", None)
    return None if error is None else msgspec.json.encode(error).decode()
