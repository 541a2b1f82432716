"""The steps of a run: how each stands or ended, why, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from rota.domain.blocker import Kind
from rota.domain.errors import UsageError
from rota.domain.instant import moment
from rota.domain.status import Status
from rota.domain.workflow import advance, drawing, edges
from rota.domain.workflow import condition as conditions
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow.graph import Graph, Step
from rota.domain.workflow.letters import BAD, BLOCKED, ENDED, OPEN, SKIPPED, UNDECIDED
from rota.domain.workflow.maps import Tally
from rota.domain.workflow.template import TemplateError
from rota.ops.runs.run import graph_of
from rota.store import run_reader
from rota.store.port import View
from rota.store.run_reader import BadItem, ItemEnds, RunRow, StepRow
from rota.views.inputs import StoredValues, ValueIsGone
from rota.views.map_items import MapInfo, bad_words, map_info
from rota.views.shape import Shape, seconds, shaped, to_json
from rota.views.stored_json import decoded, error_text
from rota.views.wait import WaitInfo, sentence, wait_info
from rota.views.why import why

PENDING = "pending"
"""The status of a step that is not decided yet."""
SHORT_VALUE = 40
"""How many characters of a value the explanation of a skipped step shows."""
MOST_EXPLAINED = 10
"""How many steps are explained that neither run nor have ended: each explanation is a read."""


class SubRun(Shape, frozen=True):
    """How far the run of a sub-workflow is. Its id is the step's `execution_id`."""

    step_count: int
    ended_count: int


class StepInfo(Shape, frozen=True):
    """A step of a run.

    `status` is `pending` until it is decided whether the step runs, then the status of its execution, or `blocked` if
    it never ran because an upstream step was bad. `reason` is a code, and `because` says it in words. `is_kept` means
    that a retry took the result from an earlier run. The times of a map do not include those of kept items.
    """

    step: str
    status: str
    """`pending` until it is decided whether it runs, then the status of its execution; or `blocked`."""
    reason: str | None
    because: str | None
    """Why it has this status, in words."""
    job: str | None
    """The name of the job; null if the step is none."""
    workflow: str | None
    """The name of the sub-workflow; null if the step is none."""
    execution_id: str | None
    """The id of its execution; null for a map, and before it has one."""
    is_kept: bool
    """Whether a retry took its result from an earlier run."""
    may_fail: bool
    """Whether its failure does not fail the run."""
    attempt_count: int
    placed_at: datetime | None
    """When its execution was enqueued; null before that."""
    started_at: datetime | None
    completed_at: datetime | None
    duration: timedelta | None
    error_message: str | None
    error: Any
    upstream: list[str]
    """The steps before it."""
    downstream: list[str]
    waits_for: list[str]
    """The steps before it that have not ended."""
    map: MapInfo | None
    """How far a map is; null for other steps."""
    sub_run: SubRun | None
    """How far the run of a sub-workflow is; null for other steps."""
    wait: WaitInfo | None
    """What the step waits for; null if it is not a wait."""

    @property
    def is_open(self) -> bool:
        return self.completed_at is None and self.status not in (PENDING, "blocked", Status.SKIPPED, *_ENDED)


_ENDED = (Status.SUCCESS, Status.FAILED, Status.CANCELLED)


class Neighbour(Shape, frozen=True):
    """Another step of the same run, and its status."""

    step: str
    status: str
    """As the member `status` of a step."""


class StepPlace(Shape, frozen=True):
    """Which step of which run an execution is, the steps that it waited for, and those that wait for it.

    `undoes` is the run that the execution undoes, or the run whose step it undoes. In the undo of a step, `step` is the
    name of that step; in the undo of a whole run it is None.
    """

    run_id: str
    workflow: str
    undoes: str | None
    """The run that the execution undoes, or the run whose step it undoes."""
    step: str | None
    """The name of the step; null in the undo of a whole run."""
    index: int | None
    upstream: list[Neighbour]
    """The steps that it waited for."""
    downstream: list[Neighbour]
    """The steps that wait for it."""


def steps(view: View, row: RunRow, graph: Graph) -> list[StepInfo]:
    """All steps of a run, in the order of the graph. A run that has not opened has only pending ones."""
    letters = row.letters or UNDECIDED * len(graph.steps)
    single = [number for number, step in enumerate(graph.steps) if not step.is_map and letters[number] != UNDECIDED]
    rows = run_reader.steps(view, row.id, single) if single else {}
    infos = [_info(row.id, graph, letters, number, rows.get(number), view.now) for number in range(len(graph.steps))]
    _with_maps(view, row, graph, letters, infos)
    return _explained(view, row, graph, infos)


def step_place(view: View, namespace: str, id: str) -> StepPlace | None:
    """None if the execution is not a step of a run."""
    place = run_reader.place_in_run(view, namespace, id)
    row = None if place is None else run_reader.run(view, namespace, place[0])
    if place is None or row is None or not row.graph:
        return None
    _, number, index = place
    if number is None:
        return StepPlace(
            run_id=row.id, workflow=row.job, undoes=row.id, step=None, index=None, upstream=[], downstream=[]
        )
    graph, index_of = graph_of(view, row), edges.of(graph_of(view, row))
    letters = row.letters or UNDECIDED * len(graph.steps)

    def neighbours(numbers: Iterable[int]) -> list[Neighbour]:
        return [Neighbour(graph.steps[one].id, status_word(letters[one])) for one in sorted(numbers)]

    return StepPlace(
        run_id=row.id,
        workflow=row.job,
        undoes=row.undo_of,
        step=graph.steps[number].id,
        index=index,
        upstream=neighbours(index_of.steps[number].upstream),
        downstream=neighbours(index_of.downstream[number]),
    )


class _IsStep(Protocol):
    @property
    def run(self) -> str | None: ...
    @property
    def step(self) -> int | None: ...


StepNames = Mapping[tuple[str | None, int | None], str]
"""The names of steps, by run and number."""


def step_names(view: View, namespace: str, rows: Iterable[_IsStep]) -> StepNames:
    """The names of the steps that are among these executions."""
    wanted = {(row.run, row.step) for row in rows if row.run is not None and row.step is not None}
    runs = run_reader.runs(view, namespace, sorted({run for run, _ in wanted if run is not None})) if wanted else []
    graphs = {row.id: graph_of(view, row) for row in runs if row.graph}
    return {
        (run, number): graphs[run].steps[number].id
        for run, number in wanted
        if run in graphs and number is not None and number < len(graphs[run].steps)
    }


def step_number(view: View, namespace: str, run: str, name: str) -> int:
    """The number of a step of a run, by its name."""
    row = run_reader.run(view, namespace, run)
    numbers = graph_of(view, row).numbers if row is not None and row.letters and row.graph else {}
    if name not in numbers:
        raise UsageError(f"run {run} has no step {name!r}: its steps are {', '.join(numbers) or 'not known yet'}")
    return numbers[name]


def status_word(letter: str) -> str:
    """The status that a letter alone says: an open step is running."""
    letter = letter.lower()
    words = {UNDECIDED: PENDING, OPEN: Status.RUNNING.value, BLOCKED: "blocked"}
    return words.get(letter) or str(alphabet.status_of(letter))


def names_of(numbers: Iterable[int], graph: Graph) -> list[str]:
    return [graph.steps[number].id for number in sorted(numbers)]


# --- Single steps ---------------------------------------------------------------------------------


def _info(run: str, graph: Graph, letters: str, number: int, row: StepRow | None, now: int) -> StepInfo:
    step, index = graph.steps[number], edges.of(graph)
    wait = wait_info(row, row.result, run, step.id) if row else None
    reason, because = _why_not(graph, letters, number)
    if row is not None:
        reason, because = row.reason or None, _wait_words(wait, row, now)
    error = decoded(row.error) if row else None
    upstream = index.steps[number].upstream
    info = StepInfo(
        step=step.id,
        status=row.status.value if row else status_word(letters[number]),
        reason=reason,
        because=because,
        job=step.job,
        workflow=step.workflow,
        execution_id=row.id if row else None,
        is_kept=alphabet.is_kept(letters[number]),
        may_fail=step.may_fail,
        attempt_count=row.attempts if row else 0,
        placed_at=None,
        started_at=None,
        completed_at=None,
        duration=None,
        error_message=error_text(error),
        error=error,
        upstream=names_of(upstream, graph),
        downstream=names_of(index.downstream[number], graph),
        waits_for=names_of([one for one in upstream if letters[one].lower() not in ENDED], graph)
        if letters[number] == UNDECIDED
        else [],
        map=None,
        sub_run=_sub_run(row),
        wait=wait,
    )
    if row is None:
        return info
    started_at = row.created_at if wait else row.started_at
    return _timed(info, row.created_at, started_at, row.finished_at, now)


def _wait_words(wait: WaitInfo | None, row: StepRow, now: int) -> str | None:
    """What an open wait waits for, or how an ended one ended; None if the step is not a wait."""
    if wait is None:
        return None
    return sentence(wait, moment(now)) if row.finished_at is None else wait.outcome


def _timed(
    info: StepInfo, placed_at: int | None, started_at: int | None, finished_at: int | None, now: int
) -> StepInfo:
    until = finished_at or now
    return shaped(
        StepInfo,
        info,
        placed_at=placed_at,
        started_at=started_at,
        completed_at=finished_at,
        duration=None if started_at is None else seconds(max(0, until - started_at)),
    )


def _sub_run(row: StepRow | None) -> SubRun | None:
    if row is None or not row.letters:
        return None
    return SubRun(step_count=len(row.letters), ended_count=ended_count(row.letters))


def ended_count(letters: str) -> int:
    return sum(letter in ENDED for letter in letters.lower())


def _why_not(graph: Graph, letters: str, number: int) -> tuple[str | None, str | None]:
    """Why a step has no execution: the code, and the words."""
    letter = letters[number].lower()
    step = graph.steps[number]
    if letter in (UNDECIDED, OPEN, alphabet.SUCCESS) or (step.is_map and letter not in (SKIPPED, BLOCKED)):
        return None, None
    if step.is_undo:
        return "nothing_to_undo", "nothing to undo"
    code = advance.why(graph, letters, number)
    return code, _because(graph, letters, number, code)


def _because(graph: Graph, letters: str, number: int, code: str) -> str:
    step = graph.steps[number]
    upstream = sorted(edges.of(graph).steps[number].upstream)
    match code:
        case "upstream_failed":
            return _listed(graph, letters, upstream, BAD)
        case "upstream_skipped":
            return _listed(graph, letters, upstream, SKIPPED)
        case "condition":
            return f"{_condition(step)} is false"
        case "bad_condition":
            return f"{_condition(step)} cannot be judged"
        case "rule":
            return f"rule {step.rule} over {', '.join(step.after)}"
        case _:
            return "the run stopped"


def _condition(step: Step) -> str:
    return " and ".join(drawing.condition_words(one) for one in step.when) or "its condition"


def _listed(graph: Graph, letters: str, numbers: Sequence[int], wanted: str) -> str:
    words = {"failed": "failed", "cancelled": "was cancelled", "skipped": "was skipped", "blocked": "was blocked"}
    found = [one for one in numbers if letters[one].lower() in wanted]
    return ", ".join(f"{graph.steps[one].id} {words[status_word(letters[one])]}" for one in found)


def _explained(view: View, row: RunRow, graph: Graph, infos: list[StepInfo]) -> list[StepInfo]:
    """Adds why placed steps are not running, and which value made a condition skip a step."""
    left = MOST_EXPLAINED
    values = StoredValues(view, row, graph)
    outcomes = {step.id: letter.lower() for step, letter in zip(graph.steps, row.letters, strict=False)}
    for position, info in enumerate(infos):
        if info.reason == "condition" and left and (words := _false_condition(graph.steps[position], outcomes, values)):
            infos[position] = msgspec.structs.replace(info, because=words)
            left -= 1
        is_waiting = info.is_open and info.execution_id and info.status != Status.RUNNING and info.wait is None
        if is_waiting and left and (found := why(view, row.namespace, info.execution_id or "")):
            is_held = any(check.code == Kind.RUN_PAUSED and check.holds is False for check in found.checks)
            reason = Kind.RUN_PAUSED.value if is_held else info.reason
            infos[position] = msgspec.structs.replace(info, because=found.text, reason=reason)
            left -= 1
    return infos


def _false_condition(step: Step, outcomes: Mapping[str, str], values: StoredValues) -> str | None:
    """Which condition of a skipped step was false, with its first value: `reduce.total > 5000 is false (4999)`."""
    try:
        false = next((one for one in step.when if not conditions.holds(one, outcomes, values)), None)
    except (TemplateError, ValueIsGone):
        return None
    if false is None:
        return None
    inner = false.get("not", false)
    ((_, operand),) = inner.items()
    value = values.resolved(operand[0]) if _begins_with_reference(operand) else None
    shown = "" if value is None or isinstance(value, dict | list) else f" ({_short(value)})"
    return f"{drawing.condition_words(inner)} {'holds' if 'not' in false else 'is false'}{shown}"


def _begins_with_reference(operand: Any) -> bool:
    """Whether the operands of a comparison begin with a reference, and not with a constant."""
    return isinstance(operand, list) and isinstance(operand[0], dict) and set(operand[0]) == {"$"}


def _short(value: Any) -> str:
    words = to_json(value)
    return words if len(words) <= SHORT_VALUE else f"{words[:SHORT_VALUE]}…"


# --- Maps -----------------------------------------------------------------------------------------


def _with_maps(view: View, row: RunRow, graph: Graph, letters: str, infos: list[StepInfo]) -> None:
    """Adds to the maps among the steps what their items say."""
    placed = [number for number, step in enumerate(graph.steps) if step.is_map and letters[number].lower() in "osfck"]
    if not placed:
        return
    tallies = run_reader.tallies(view, row.id)
    is_retry = row.replay_of is not None
    ended = run_reader.ended_items(view, row.id, [one for one in placed if is_retry or letters[one] != OPEN])
    running = run_reader.running_items(view, row.id) if row.finished_at is None else {}
    for number in placed:
        ends = ended.get(number)
        tally = tallies.get(number) or (ends.tally if ends else Tally())
        statuses = [status for status in (Status.FAILED, Status.CANCELLED) if getattr(tally, status)]
        bad = run_reader.bad_items(view, row.id, number, statuses, run_reader.MOST_BAD_ITEMS)
        info = _timed_map(view, row, number, infos[number], ends, is_open=letters[number] == OPEN)
        if bad and bad[0].map_index is None:
            infos[number] = _not_a_list(info, bad[0])
            continue
        if bad and letters[number].lower() in BAD:
            info = msgspec.structs.replace(info, reason=bad[0].reason, because=bad_words(graph.steps[number], tally))
        infos[number] = msgspec.structs.replace(
            info,
            map=map_info(graph.steps[number], tally, running.get(number, 0), bad, ends),
            error=decoded(bad[0].error) if bad else None,
            error_message=error_text(decoded(bad[0].error)) if bad else None,
        )


def _not_a_list(info: StepInfo, one: BadItem) -> StepInfo:
    """A map that failed because the value that it maps over is not a list. Its only execution has the error."""
    error = decoded(one.error)
    about = {"execution_id": one.execution, "attempt_count": one.attempts, "reason": one.reason}
    return msgspec.structs.replace(info, **about, error=error, error_message=error_text(error))


def _timed_map(
    view: View, row: RunRow, number: int, info: StepInfo, ends: ItemEnds | None, *, is_open: bool
) -> StepInfo:
    """From the first start to the last end. Of an open map only the first item is read."""
    if ends is not None and not is_open:
        return _timed(info, None, ends.started_at, ends.finished_at, view.now)
    first = view.one("first_item", run=row.id, number=number)
    found = view.records("states_of_steps", StepRow, ids=[first[0]]) if first else []
    return _timed(info, None, found[0].started_at, None, view.now) if found else info
