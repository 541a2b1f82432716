"""The graph of a workflow as data: what a traced function compiles to, and what a YAML or JSON file says.

The graph is the definition of a job of kind `workflow`; its canonical JSON is the content of the job's version. Steps
are numbered by their position, and a run stores one letter per step (`letters.py`).

Three kinds of values occur in a graph:

- a **template** is JSON in which objects with a `$` key stand for values that are known later (`template.py`);
- a **condition** is an object with one operator (`condition.py`);
- a **step name** names an upstream step.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import msgspec

from rota.domain.workflow import wait as waits
from rota.domain.workflow.wait import Approve, AwaitEvent, Length, Sleep, Wait

FORM = "workflow/1"
MOST_STEPS = 1_000
MOST_WIDTH = 100_000
MOST_NESTING = 20

Template = Any
Condition = dict[str, Any]
OnFailure = Literal["finish", "stop"]
UndoOn = Literal["failed", "cancelled"]


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One step. It runs a `job` or a `workflow` of the same app, or it waits: `sleep`, `approve` or `event`."""

    id: str
    job: str | None = None
    workflow: str | None = None
    sleep: Length | None = None
    approve: Approve | None = None
    event: AwaitEvent | None = None
    arguments: dict[str, Template] = msgspec.field(name="with", default={})
    """The arguments by parameter. For a map those that all items share."""
    map: Template | None = None
    """The list of items: the step is a map."""
    item: str | None = msgspec.field(name="as", default=None)
    """The parameter that takes the item; None if each item is a whole call: an object, or a list of arguments."""
    positional: tuple[str, ...] = ()
    """If each item is a whole call: the parameters that a list of arguments fills, in order."""
    at_once: int | None = None
    tolerate: int | str | None = None
    """How many items may fail: a number, or a share such as `1%`."""
    after: tuple[str, ...] = ()
    rule: str = "all_success"
    when: tuple[Condition, ...] = ()
    """The conditions of the blocks around the step, outermost first."""
    may_fail: bool = False
    undo: str | None = None
    """The job that undoes the step. It gets the result of the step."""
    undo_failed: bool = False
    """Whether the step is also undone if it started and did not succeed. The job then gets null."""
    queue: str | None = None
    priority: int | None = None
    delay: float | None = None
    timeout: float | None = None
    retry: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    headers: dict[str, str] = {}

    @property
    def runs(self) -> str:
        """The name of the job or workflow that the step runs; for a wait, the name of the function that adds it."""
        return self.job or self.workflow or (waits.kind_of(self.wait).function if self.wait is not None else "")

    @property
    def wait(self) -> Wait | None:
        """What the step waits for; None if it runs a job or a workflow."""
        return self.approve or self.event or (None if self.sleep is None else Sleep(self.sleep))

    @property
    def values(self) -> list[Template]:
        """All templates of the step. The step starts when the steps that these refer to have succeeded."""
        if self.approve is not None:
            return [self.approve.text]
        if self.event is not None:
            return [self.event.subject, self.event.where]
        return [self.arguments, self.map]

    @property
    def is_map(self) -> bool:
        return self.map is not None

    @property
    def is_undo(self) -> bool:
        """Whether the step undoes a step of another run (`undo.py`)."""
        return False


class Graph(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, dict=True):
    """A workflow. Durations are seconds; those of waits may be texts such as `3d`."""

    rota: str = msgspec.field(default=FORM)
    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """The JSON schema of each parameter."""
    required: tuple[str, ...] = ()
    """The parameters without a default."""
    steps: tuple[Step, ...] = ()
    result: Template = None
    timeout: float | None = None
    on_failure: OnFailure = "finish"
    undo_on: tuple[UndoOn, ...] = ("failed", "cancelled")
    """The ends of a run after which its steps are undone."""
    max_nesting: int = MOST_NESTING
    max_width: int = MOST_WIDTH

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each step, by its name."""
        return {step.id: number for number, step in enumerate(self.steps)}

    @property
    def callees(self) -> set[str]:
        """The names of the jobs and workflows that its steps and their undos run."""
        return {name for step in self.steps if step.wait is None for name in (step.runs, step.undo) if name}


_STEP_DEFAULTS, _GRAPH_DEFAULTS, _APPROVE_DEFAULTS, _EVENT_DEFAULTS = (
    {
        field.encode_name: list(field.default) if isinstance(field.default, tuple) else field.default
        for field in msgspec.structs.fields(kind)
    }
    for kind in (Step, Graph, Approve, AwaitEvent)
)
decode = msgspec.json.Decoder(Graph).decode


def to_data(graph: Graph) -> dict[str, Any]:
    """The graph as JSON values, in the order of the fields and without defaults. The form is always named."""
    data = msgspec.json.decode(msgspec.json.encode(graph))
    steps = [_plain_step(step) for step in data.get("steps", ())]
    data = _without(_GRAPH_DEFAULTS, data)
    return {"rota": graph.rota, **data, **({"steps": steps} if steps else {})}


def _plain_step(step: dict[str, Any]) -> dict[str, Any]:
    for name, defaults in (("approve", _APPROVE_DEFAULTS), ("event", _EVENT_DEFAULTS)):
        if step.get(name) is not None:
            step[name] = _without(defaults, step[name])
    return _without(_STEP_DEFAULTS, step)


def _without(defaults: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Removes members with default values: msgspec omits a default only if it is the same object."""
    return {name: value for name, value in data.items() if value != defaults[name]}
