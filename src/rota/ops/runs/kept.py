"""The steps that a retry keeps of an earlier run. They refer to the old executions; no result is copied."""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain.workflow.letters import is_kept
from rota.ops.runs.run import Run
from rota.store.port import Tx


def missing_result(tx: Tx, run: str, kept: Sequence[int], partial: Sequence[int]) -> int | None:
    """The number of the first kept step whose result retention has deleted; None if all results are there.

    Locks the results, so that retention deletes none before the transaction commits. Results of `partial` maps are
    locked, too, but may be missing.
    """
    if kept or partial:
        tx.rows("lock_kept", run=run, numbers=[*kept, *partial])
    found = tx.one("missing_result", run=run, numbers=list(kept)) if kept else None
    return None if found is None else int(found[0])


def keep_steps(tx: Tx, run: Run) -> None:
    """Makes a run that opens as a retry refer to the kept steps of the earlier run. Both have the same graph."""
    kept = [(number, number) for number, letter in enumerate(run.letters) if is_kept(letter)]
    if run.retry_of is not None and kept:
        tx.run("keep_steps", run=run.id, old=run.retry_of, rows=kept)
