"""Starting the steps of a run: each becomes an execution, a map one for each item."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rota import ids
from rota.domain import headers, overrides, retry
from rota.domain.blocker import Kind
from rota.domain.instant import MICROSECONDS
from rota.domain.payload import encode
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow import maps as map_rules
from rota.domain.workflow import next_look, template
from rota.domain.workflow.graph import Graph, Step
from rota.domain.workflow.template import TemplateError
from rota.domain.workflow.wait import Ending
from rota.ops.place import Batch, Origin, Route, StepOf, find_route, place
from rota.ops.runs.begin_wait import begin
from rota.ops.runs.inputs import Inputs
from rota.ops.runs.items import map_items, omitted_items
from rota.ops.runs.move_waits import move_waits
from rota.ops.runs.run import Pinned, Run, pinned
from rota.ops.runs.values import Values
from rota.store.hints import Due
from rota.store.port import Tx

AT_FIRST = 500
"""Items of a map that are placed in the transaction that starts it; the expander places the others."""
ROUTE_S = 1.0
"""The route of a job, such as the policy of its queue, is cached for this long when steps are placed."""


class Started:
    """Rows to write, gathered from all runs that advance in one transaction."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.steps: list[tuple[str, int, int, str]] = []
        self.tallies: list[tuple[str, int, int, int, int]] = []
        self.maps: list[tuple[str, int, int, int, str | None]] = []
        self.endings: dict[str, Ending] = {}
        """Waits that end in the transaction that places them."""
        self.looks: dict[str, list[int]] = defaultdict(list)
        """By run: when to look for the ends of the other waits."""
        self._routes: dict[tuple[str, str, str, str], Route | None] = {}
        self._lanes: dict[str, tuple[str, int]] = {}

    def route(self, tx: Tx, run: Run, job: str, queue: str, version: int) -> Route:
        key = (run.namespace, run.app, job, queue)
        if key not in self._routes:
            self._routes[key] = find_route(tx, *key, max_age_s=ROUTE_S)
        found = self._routes[key]
        assert found is not None, f"job {job} was declared when the run opened"
        return msgspec.structs.replace(found, job_version=version)

    def lane(self, tx: Tx, run: str) -> tuple[str, int]:
        """The queue and the lane of an open run."""
        if run not in self._lanes:
            found = tx.one("lane_of_run", id=run)
            assert found is not None, "an open run is in `waiting`"
            self._lanes[run] = (found[0], found[1])
        return self._lanes[run]

    def write(self, tx: Tx) -> None:
        place(tx, self.batches)
        for statement, rows in (("add_steps", self.steps), ("add_tallies", self.tallies), ("open_maps", self.maps)):
            if rows:
                tx.run(statement, rows=rows)
        if self.maps:
            tx.tell(Due(tx.now))
        if self.endings:
            # Without `after_end`: the caller advances the run, and no other transaction sees these executions yet.
            move_waits(tx, self.endings)


def start(
    tx: Tx, started: Started, run: Run, graph: Graph, letters: str, numbers: Iterable[int], values: Values
) -> dict[int, str]:
    """Places these steps. Returns the letters of those that end in this transaction: maps without items, some waits."""
    outcomes = {step.id: letter for step, letter in zip(graph.steps, letters, strict=True)}
    ended: dict[int, str] = {}
    for number in numbers:
        step = graph.steps[number]
        if step.wait is not None:
            begun = begin(tx, run, graph, number, outcomes, values, started.lane(tx, run.id))
            started.batches.append(begun.batch)
            started.steps.append((run.id, number, 0, begun.id))
            if begun.ending is None:
                started.looks[run.id].append(next_look.for_wait(step.wait, begun.ends_at, tx.now))
            else:
                started.endings[begun.id] = begun.ending
                ended[number] = alphabet.letter_of(begun.ending.status)
                values.add(step.id, begun.ending.result)
            continue
        inputs = inputs_of(run, step, outcomes)
        if not step.is_map:
            _start_one(tx, started, run, number, step, inputs)
            continue
        try:
            items = map_items(tx, run, graph, number, outcomes, values)
        except TemplateError as error:
            # An ordinary execution says what is wrong with the list, and fails when it is claimed.
            _start_one(tx, started, run, number, step, Inputs.broken(str(error)))
            continue
        if not items or not _start_map(tx, started, run, number, step, inputs, items):
            ended[number] = alphabet.SUCCESS
    return ended


def inputs_of(run: Run, step: Step, letters: Mapping[str, str]) -> Inputs:
    """The arguments of a step whose upstreams have ended. Arguments that a retry gave replace those of the graph."""
    if step.is_undo:
        return Inputs.of({}) if step.job is None else Inputs.undoing(pinned(run.pinned).jobs[step.job].first or "")
    given = {name: {"$literal": value} for name, value in pinned(run.pinned).arguments.get(step.id, {}).items()}
    return Inputs.of({name: template.lowered(value, letters) for name, value in {**step.arguments, **given}.items()})


def _start_one(tx: Tx, started: Started, run: Run, number: int, step: Step, inputs: Inputs) -> None:
    id = ids.named(tx.now, f"{run.id}/{number}")
    batch = _batch(tx, started, run, step, {id: inputs.literals()}, StepOf(run.id, number, inputs.references()))
    started.batches.append(batch)
    started.steps.append((run.id, number, 0, id))


def _start_map(
    tx: Tx, started: Started, run: Run, number: int, step: Step, inputs: Inputs, items: Sequence[Any]
) -> bool:
    """Places the first items, and leaves the others to the expander. False if there is no item to place."""
    width = len(items)
    omitted = _keep_items(tx, run, number, width)
    widths, done = map_rules.shard_widths(width), Counter(map(map_rules.shard, omitted))
    started.tallies += [
        (run.id, number, shard, count - done[shard], done[shard]) for shard, count in enumerate(widths) if count
    ]
    if len(omitted) == width:
        return False
    first = [(index, item) for index, item in enumerate(items[:AT_FIRST]) if index not in omitted]
    placed = start_items(tx, started, run, number, step, inputs, first, step.at_once)
    if width > AT_FIRST:
        started.maps.append((run.id, number, width, AT_FIRST, min(placed, default=None)))
    return True


def _keep_items(tx: Tx, run: Run, number: int, width: int) -> set[int]:
    """Makes the run refer to the items that a retry keeps. Returns all items that it does not place."""
    kept = pinned(run.pinned).partial.get(number)
    if kept is not None:
        tx.run("keep_items", run=run.id, number=number, old=kept[0], old_number=kept[1])
    return omitted_items(tx, run, number, 0, width) if kept is not None or run.undo_of is not None else set()


def start_items(
    tx: Tx,
    started: Started,
    run: Run,
    number: int,
    step: Step,
    inputs: Inputs,
    items: Sequence[tuple[int, Any]],
    free: int | None,
) -> list[str]:
    """Places items of a map, each with its index. With `free`, only that many may start; the others wait."""
    # Items of one chunk have the same rank: their ids keep them in the order of the list.
    placed = [ids.named(tx.now, f"{run.id}/{number}/{index}", place) for place, (index, _) in enumerate(items)]
    started.steps += [(run.id, number, index, id) for (index, _), id in zip(items, placed, strict=True)]
    split = len(items) if free is None else max(0, min(free, len(items)))
    waits = ((Kind.MAP, f"{run.id}/{number}"),)
    for low, high, blockers in ((0, split, ()), (split, len(items), waits)):
        for start_at, stop_at in _ranges([index for index, _ in items[low:high]]):
            these = range(low + start_at, low + stop_at)
            calls = {placed[one]: inputs.literals(map_rules.call(step, items[one][1])) for one in these}
            of = StepOf(run.id, number, inputs.references(), items[low + start_at][0])
            batch = _batch(tx, started, run, step, calls, of)
            started.batches.append(msgspec.structs.replace(batch, blockers=blockers))
    return placed


def _ranges(indices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The positions at which runs of consecutive indices begin and end."""
    begin = 0
    for position in range(1, len(indices) + 1):
        if position == len(indices) or indices[position] != indices[position - 1] + 1:
            yield begin, position
            begin = position


def _batch(tx: Tx, started: Started, run: Run, step: Step, calls: Mapping[str, str], of: StepOf) -> Batch:
    about = pinned(run.pinned)
    job = about.jobs[step.runs]
    route = started.route(tx, run, step.runs, step.queue or job.queue, job.version)
    run_at = tx.now + round((step.delay or 0) * MICROSECONDS)
    has_deadline = job.start_within_s is not None and not step.is_undo
    deadline = run_at + round((job.start_within_s or 0) * MICROSECONDS) if has_deadline else None
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
