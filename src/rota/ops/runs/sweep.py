"""A safety net: recomputes runs that nothing has changed for a while from the ends of their steps.

A run advances in the transactions that end its steps, so there is never anything to repair. A repair is a defect of
Rota: it is logged as an error, and the tests assert that there was none.

The column `look_at` of a run says when the sweeper looks at it next. Every change of the run sets it, and so does every
look (`domain/workflow/next_look.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from rota.domain.instant import MICROSECONDS
from rota.domain.status import Status
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow import next_look
from rota.domain.workflow.graph import Step
from rota.domain.workflow.maps import Tally
from rota.ops.after_end import follow
from rota.ops.runs import maps
from rota.ops.runs.advance import Level, advance_levels
from rota.ops.runs.run import Run, graph_of
from rota.store.port import Tx

MOST = 20
MOST_STEPS = 2_000
"""After this many open steps one transaction checks no further run."""


class _Seen(msgspec.Struct, frozen=True, array_like=True):
    """An open step that is not a map."""

    run: str
    number: int
    status: str | None
    """The status of its execution, if that has ended."""
    deadline: int | None
    sub_look_at: int | None
    """When the sweeper looks at the sub-run that is this step, if the sub-run is open."""


def sweep(tx: Tx, early_s: float = 0.0) -> list[str]:
    """Checks some runs whose `look_at` is due, or is due within `early_s`; returns the run that it repaired, if any.

    Never waits for the row of a run: these runs have different depths, and other transactions lock the deepest first.
    """
    due = tx.records("runs_to_look_at", Run, until=tx.now + round(early_s * MICROSECONDS), most=MOST)
    runs = list(_bounded(due))
    if not runs:
        return []
    tallies = maps.tallies(tx, [run.id for run in runs])
    seen = _seen(tx, runs, tallies)
    noted: list[tuple[str, int]] = []
    for run in runs:
        noted.append((run.id, _next_look(tx, run, seen[run.id])))
        level = _unnoticed(tx, run, seen[run.id], tallies)
        if level is not None:
            tx.run("note_looks", rows=noted)
            follow(tx, advance_levels(tx, {run.depth: level}))
            return [run.id]
    tx.run("note_looks", rows=noted)
    return []


def _bounded(runs: Sequence[Run]) -> Iterator[Run]:
    """The first of these runs, until they have `MOST_STEPS` open steps."""
    steps = 0
    for run in runs:
        if steps >= MOST_STEPS:
            return
        steps += run.letters.count(alphabet.OPEN)
        yield run


def _open_steps(run: Run) -> list[int]:
    return [number for number, letter in enumerate(run.letters) if letter == alphabet.OPEN]


def _seen(tx: Tx, runs: Sequence[Run], tallies: Mapping[tuple[str, int], Tally]) -> dict[str, list[_Seen]]:
    """The open steps of each run, without maps."""
    steps = [(run.id, number) for run in runs for number in _open_steps(run) if (run.id, number) not in tallies]
    found: dict[str, list[_Seen]] = defaultdict(list)
    for one in tx.records("look_at_steps", _Seen, steps=steps) if steps else ():
        found[one.run].append(one)
    return found


def _next_look(tx: Tx, run: Run, seen: Sequence[_Seen]) -> int:
    graph = graph_of(tx, run)
    steps = [_look_for_end(tx.now, graph.steps[one.number], one) for one in seen]
    unseen = run.letters.count(alphabet.OPEN) - len(seen)
    return next_look.after_look(tx.now, run.opened_at, [*steps, *[None] * unseen])


def _look_for_end(now: int, step: Step, seen: _Seen) -> int | None:
    if step.wait is None or seen.deadline is None:
        return seen.sub_look_at
    return next_look.for_wait(step.wait, seen.deadline, now)


def _unnoticed(tx: Tx, run: Run, seen: Sequence[_Seen], tallies: Mapping[tuple[str, int], Tally]) -> Level | None:
    """The ends that the row of the run does not show; None if there are none."""
    if run.undo is not None:
        ended = tx.one("end_of", id=run.undo)
        return None if ended is None else Level(undone={run.id: Status(ended[0])})
    ends = {one.number: alphabet.letter_of(Status(one.status)) for one in seen if one.status is not None}
    counts = [tallies[run.id, number] for number in _open_steps(run) if (run.id, number) in tallies]
    is_decided = any(not count.open for count in counts)
    return Level(steps={run.id: ends}) if ends or is_decided or alphabet.is_over(run.letters) else None
