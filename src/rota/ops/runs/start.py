"""Starting the steps of a run: each becomes an execution, a map one for each item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rota import ids
from rota.domain import headers, overrides, retry
from rota.domain.blocker import Kind
from rota.domain.instant import MICROSECONDS
from rota.domain.payload import encode
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow import maps as map_rules
from rota.domain.workflow import template
from rota.domain.workflow.graph import Graph, Step
from rota.domain.workflow.template import TemplateError
from rota.ops.place import Batch, Origin, Route, StepOf, find_route, place
from rota.ops.runs.inputs import Inputs
from rota.ops.runs.run import Pinned, Run, pinned
from rota.ops.runs.values import Values
from rota.store.port import Tx

AT_FIRST = 500
"""Items of a map that are placed in the transaction that starts it; the expander places the others."""


class Started:
    """Rows to write, gathered from all runs that advance in one transaction."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.steps: list[tuple[str, int, int, str]] = []
        self.tallies: list[tuple[str, int, int, int, int]] = []
        self.maps: list[tuple[str, int, int, int, str | None, str | None]] = []
        self._routes: dict[tuple[str, str, str, str], Route | None] = {}

    def route(self, tx: Tx, run: Run, job: str, queue: str, version: int) -> Route:
        key = (run.namespace, run.app, job, queue)
        if key not in self._routes:
            self._routes[key] = find_route(tx, *key)
        found = self._routes[key]
        assert found is not None, f"job {job} was declared when the run opened"
        return msgspec.structs.replace(found, job_version=version)

    def write(self, tx: Tx) -> None:
        place(tx, self.batches)
        for statement, rows in (("add_steps", self.steps), ("add_tallies", self.tallies), ("open_maps", self.maps)):
            if rows:
                tx.run(statement, rows=rows)


def start(
    tx: Tx, started: Started, run: Run, graph: Graph, letters: str, numbers: Iterable[int], values: Values
) -> dict[int, str]:
    """Places these steps. Returns the letters of those that have ended at once: maps without items."""
    outcomes = {step.id: letter for step, letter in zip(graph.steps, letters, strict=True)}
    ended: dict[int, str] = {}
    for number in numbers:
        step = graph.steps[number]
        arguments = {name: template.lowered(value, outcomes) for name, value in step.arguments.items()}
        if not step.is_map:
            _start_one(tx, started, run, number, step, Inputs.of(arguments))
            continue
        try:
            value = template.resolve(template.lowered(step.map, outcomes), values, values.outcomes)
            items = map_rules.items(step, graph.max_width, value)
        except TemplateError as error:
            # An ordinary execution says what is wrong with the list, and fails when it is claimed.
            _start_one(tx, started, run, number, step, Inputs.broken(str(error)))
            continue
        if not items:
            ended[number] = alphabet.SUCCESS
        else:
            _start_map(tx, started, run, number, step, Inputs.of(arguments), items)
    return ended


def _start_one(tx: Tx, started: Started, run: Run, number: int, step: Step, inputs: Inputs) -> None:
    id = ids.named(tx.now, f"{run.id}/{number}")
    batch = _batch(tx, started, run, step, {id: inputs.literals()}, StepOf(run.id, number, inputs.references()))
    started.batches.append(batch)
    started.steps.append((run.id, number, 0, id))


def _start_map(
    tx: Tx, started: Started, run: Run, number: int, step: Step, inputs: Inputs, items: Sequence[Any]
) -> None:
    width, first = len(items), items[:AT_FIRST]
    started.tallies += [
        (run.id, number, shard, count, 0) for shard, count in enumerate(map_rules.shard_widths(width)) if count
    ]
    placed = start_items(tx, started, run, number, step, inputs, first, 0, step.at_once)
    if len(first) < width:
        started.maps.append((run.id, number, width, len(first), min(placed), max(placed)))


def start_items(
    tx: Tx,
    started: Started,
    run: Run,
    number: int,
    step: Step,
    inputs: Inputs,
    items: Sequence[Any],
    first: int,
    free: int | None,
) -> list[str]:
    """Places items of a map, from number `first` on. With `free`, so many of them may start; the others wait."""
    placed = [ids.named(tx.now, f"{run.id}/{number}/{first + position}") for position in range(len(items))]
    texts = [inputs.literals(map_rules.call(step, item)) for item in items]
    started.steps += [(run.id, number, first + position, id) for position, id in enumerate(placed)]
    split = len(items) if free is None else max(0, min(free, len(items)))
    waits = ((Kind.MAP, f"{run.id}/{number}"),)
    for low, high, blockers in ((0, split, ()), (split, len(items), waits)):
        if low < high:
            calls = dict(zip(placed[low:high], texts[low:high], strict=True))
            of = StepOf(run.id, number, inputs.references(), first + low)
            batch = _batch(tx, started, run, step, calls, of)
            started.batches.append(msgspec.structs.replace(batch, blockers=blockers))
    return placed


def _batch(tx: Tx, started: Started, run: Run, step: Step, calls: Mapping[str, str], of: StepOf) -> Batch:
    about = pinned(run.pinned)
    job = about.jobs[step.runs]
    route = started.route(tx, run, step.runs, step.queue or job.queue, job.version)
    run_at = tx.now + round((step.delay or 0) * MICROSECONDS)
    deadline = None if job.start_within_s is None else run_at + round(job.start_within_s * MICROSECONDS)
    priority = next(one for one in (step.priority, about.priority, job.priority) if one is not None)
    return Batch(dict(calls), route, _origin(run, step, about), priority, run_at, deadline=deadline, step=of)


def _origin(run: Run, step: Step, about: Pinned) -> Origin:
    own = headers.encode({**headers.decode(about.headers), **step.headers}) if step.headers else about.headers
    policy = None if step.retry is None else retry.described(step.retry)
    return Origin(
        actor=about.actor,
        parent=run.id,
        tags=encode(list(step.tags), "the tags", 2**20) if step.tags else None,
        trace=about.trace,
        headers=own,
        overrides=overrides.encode(step.timeout, policy),
    )
