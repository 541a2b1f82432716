"""A safety net: recomputes runs that nothing has changed for a while from the ends of their steps.

A run advances in the transactions that end its steps, so there is never anything to repair. A repair is a defect of
Rota: it is logged as an error, and the tests assert that there was none.

A run is checked a minute after its last change. Each further check follows after as long as the run has been open, but
after a day at most. So a million runs that sleep for a month are not read every minute.
"""

from __future__ import annotations

from rota.domain.instant import MICROSECONDS
from rota.domain.status import Status
from rota.domain.workflow import letters as alphabet
from rota.ops.after_end import follow
from rota.ops.runs import maps
from rota.ops.runs.advance import Level, advance_levels
from rota.ops.runs.run import Run
from rota.store.port import Tx

QUIET_S = 60.0
LONGEST_S = 86_400.0
MOST = 20


def sweep(tx: Tx, quiet_s: float = QUIET_S) -> list[str]:
    """Looks at some runs that have not changed for `quiet_s`; returns the one that it repaired, if any.

    It never waits for the row of a run: these runs are of different depths, and others lock the deepest first.
    """
    runs = tx.records("untouched_runs", Run, before=tx.now - round(quiet_s * MICROSECONDS), most=MOST)
    return next(([run.id] for run in runs if _repair(tx, run)), [])


def _repair(tx: Tx, run: Run) -> bool:
    pause = min(tx.now - run.opened_at, round(LONGEST_S * MICROSECONDS))
    tx.run("note_swept", id=run.id, changed_at=tx.now + pause)
    if run.undo is not None:
        ended = tx.one("end_of", id=run.undo)
        level = None if ended is None else Level(undone={run.id: Status(ended[0])})
    else:
        level = _unnoticed(tx, run)
    if level is None:
        return False
    follow(tx, advance_levels(tx, {run.depth: level}))
    return True


def _unnoticed(tx: Tx, run: Run) -> Level | None:
    """The ends that the letters of the run do not show; None if there are none."""
    open_steps = [number for number, letter in enumerate(run.letters) if letter == alphabet.OPEN]
    counts = maps.tallies(tx, [run.id])
    single = [number for number in open_steps if (run.id, number) not in counts]
    rows = tx.rows("ends_of_steps", run=run.id, numbers=single) if single else []
    ends = {number: alphabet.letter_of(Status(status)) for number, status in rows}
    is_decided = any(not counts[run.id, number].open for number in open_steps if (run.id, number) in counts)
    is_over = alphabet.is_over(run.letters)
    return Level(steps={run.id: ends}) if ends or is_decided or is_over else None
