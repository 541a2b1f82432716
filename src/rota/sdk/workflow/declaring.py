"""The declaration of a workflow: `@app.workflow(…)` and its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, Unpack, get_args, overload

from rota.domain import names
from rota.domain.duration import Duration, positive_seconds
from rota.domain.errors import DefinitionError
from rota.domain.job import Definition
from rota.domain.workflow.graph import OnFailure, UndoOn
from rota.executors import kinds
from rota.executors.signature import Signature
from rota.sdk import declaration
from rota.sdk.depends_on import DependsOn
from rota.sdk.schedule_options import When
from rota.sdk.stand_in import stand_in
from rota.sdk.workflow.annotation import schema_of
from rota.sdk.workflow.graph_source import Traced, read
from rota.sdk.workflow.tracing import Subject
from rota.sdk.workflow.workflow import GraphSource, Workflow

P = ParamSpec("P")
_OF_JOB = ("priority", "description", "on", "where", "debounce")
T = TypeVar("T")
UNDO_ON = get_args(UndoOn)


class WorkflowOptions(When, total=False):
    """The options of `@app.workflow(…)`; see `App.workflow`."""

    name: str | None
    timeout: Duration | None
    on_failure: OnFailure
    undo_on: Iterable[UndoOn]
    priority: int | str
    max_nesting: int
    max_width: int
    description: str
    depends_on: DependsOn
    on: str | Sequence[str]
    where: Mapping[str, Any]
    debounce: Duration
    arguments: Mapping[str, Any]


class WorkflowDecorator(Protocol):
    """The type of `@app.workflow` and `@app.workflow(…)`."""

    @overload
    def __call__(self, function: Callable[P, T], /) -> Workflow[P, T]: ...

    @overload
    def __call__(self, function: None = None, /, **options: Unpack[WorkflowOptions]) -> WorkflowDecorator: ...

    def __call__(self, function: Any = None, /, **options: Any) -> Any: ...


class Declared(NamedTuple):
    """A workflow as an app registers it. `definition` has no graph: the source makes it later."""

    function: Callable[..., Any]
    signature: Signature
    definition: Definition
    source: GraphSource
    when: When
    arguments: Mapping[str, Any]
    """The arguments of runs that start by themselves."""
    depends_on: Any = ()


def from_function(app: str, function: Callable[..., Any], options: Mapping[str, Any]) -> Declared:
    """The declaration of a workflow that is a function."""
    if not callable(function):
        raise DefinitionError(f"@app.workflow() decorates a function, not {function!r}")
    name = names.check(options.get("name") or str(getattr(function, "__name__", "")), "a workflow's name")
    known = {**WorkflowOptions.__annotations__, **When.__annotations__}
    if unknown := sorted(options.keys() - known.keys()):
        raise DefinitionError(f"workflow {name!r}: {declaration.no_option(unknown[0], known)}")
    signature = Signature(function, name)
    of_job = {option: options[option] for option in _OF_JOB if option in options}
    made = _definition(name, signature, of_job, function.__doc__ or "")
    parameters = {name: schema_of(kind) for name, kind in signature.kinds().items()}
    subject = Subject(app, name, function, signature, parameters)
    source = Traced(subject, signature.result_type, {"description": made.description, **_settings(name, options)})
    wanted = (*When.__annotations__, "depends_on", "arguments")
    of_when = {option: value for option, value in options.items() if option in wanted}
    return Declared(function, signature, made, source, *declaration.when(of_when, name), options.get("depends_on", ()))


def from_data(data: Mapping[str, Any] | str) -> Declared:
    """The declaration of a workflow that is data."""
    source = read(data)
    graph = source.graph
    defaults = {name: schema.get("default") for name, schema in graph.parameters.items() if name not in graph.required}
    function = stand_in(graph.name, dict.fromkeys(graph.parameters, Any), "a workflow", defaults=defaults)
    signature = Signature(function, graph.name)
    made = _definition(graph.name, signature, {"description": graph.description}, "")
    return Declared(function, signature, made, source, {}, {})


def _definition(name: str, signature: Signature, options: Mapping[str, Any], doc: str) -> Definition:
    rules = declaration.rules({"retry": None, "timeout": None}, ())
    return declaration.definition(name, signature, rules, {"kind": kinds.WORKFLOW}, options, doc)


def _settings(workflow: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the graph that options set."""
    timeout, on_failure = options.get("timeout"), options.get("on_failure", "finish")
    if on_failure not in ("finish", "stop"):
        raise DefinitionError(f"workflow {workflow!r}: on_failure must be 'finish' or 'stop', not {on_failure!r}")
    numbers = {name: options[name] for name in ("max_nesting", "max_width") if name in options}
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise DefinitionError(f"workflow {workflow!r}: {name} must be a number, not {value!r}")
    timeout_s = None if timeout is None else positive_seconds(timeout, "timeout")
    undo_on = {"undo_on": _undo_on(workflow, options["undo_on"])} if "undo_on" in options else {}
    return {"timeout": timeout_s, "on_failure": on_failure, **undo_on, **numbers}


def _undo_on(workflow: str, given: Any) -> tuple[str, ...]:
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if wrong := [one for one in found if one not in UNDO_ON]:
        raise DefinitionError(f"workflow {workflow!r}: undo_on takes 'failed' and 'cancelled', not {wrong[0]!r}")
    return tuple(one for one in UNDO_ON if one in found)
