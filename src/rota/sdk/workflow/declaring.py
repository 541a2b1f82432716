"""The declaration of a workflow: `@app.workflow(…)` and its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar, Unpack, overload

from rota.domain.duration import Duration, positive_seconds
from rota.domain.errors import DefinitionError
from rota.domain.job import Definition
from rota.domain.workflow.graph import Graph, OnFailure
from rota.executors import kinds
from rota.executors.signature import Signature
from rota.sdk import declaration
from rota.sdk.stand_in import stand_in
from rota.sdk.when import When
from rota.sdk.workflow.annotation import schema_of
from rota.sdk.workflow.plan import Traced
from rota.sdk.workflow.tracing import Subject
from rota.sdk.workflow.workflow import Workflow

P = ParamSpec("P")
T = TypeVar("T")


class WorkflowOptions(When, total=False):
    """The options of `@app.workflow(…)`; see `App.workflow`."""

    name: str | None
    timeout: Duration | None
    on_failure: OnFailure
    priority: int | str
    max_nesting: int
    max_width: int
    description: str
    arguments: Mapping[str, Any]


class WorkflowDecorator(Protocol):
    """The type of `@app.workflow` and `@app.workflow(…)`."""

    @overload
    def __call__(self, function: Callable[P, T], /) -> Workflow[P, T]: ...

    @overload
    def __call__(self, function: None = None, /, **options: Unpack[WorkflowOptions]) -> WorkflowDecorator: ...

    def __call__(self, function: Any = None, /, **options: Any) -> Any: ...


def definition(name: str, signature: Signature, options: Mapping[str, Any], doc: str) -> Definition:
    """The definition of a workflow without its graph, which is made later."""
    known = {*WorkflowOptions.__annotations__, *When.__annotations__}
    if unknown := sorted(options.keys() - known):
        raise DefinitionError(f"workflow {name!r}: there is no option {unknown[0]!r}")
    of_job = {option: options[option] for option in ("priority", "description") if option in options}
    rules = declaration.rules({"retry": None, "timeout": None}, ())
    return declaration.definition(name, signature, rules, {"kind": kinds.WORKFLOW}, of_job, doc)


def when(options: Mapping[str, Any], name: str) -> tuple[When, Mapping[str, Any]]:
    """When a run starts by itself, and its arguments then."""
    of_job = {option: value for option, value in options.items() if option in (*When.__annotations__, "arguments")}
    return declaration.when(of_job, name)


def traced(
    app: str, function: Callable[..., Any], made: Definition, signature: Signature, options: Mapping[str, Any]
) -> Traced:
    """The plan of a workflow that is a function."""
    parameters = {name: schema_of(kind) for name, kind in signature.kinds().items()}
    subject = Subject(app, made.name, function, signature, parameters)
    timeout = options.get("timeout")
    on_failure = options.get("on_failure", "finish")
    if on_failure not in ("finish", "stop"):
        raise DefinitionError(f"workflow {made.name!r}: on_failure must be 'finish' or 'stop', not {on_failure!r}")
    settings = {name: options[name] for name in ("max_nesting", "max_width") if name in options}
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise DefinitionError(f"workflow {made.name!r}: {name} must be a number, not {value!r}")
    settings |= {
        "description": made.description,
        "timeout": None if timeout is None else positive_seconds(timeout, "timeout"),
        "on_failure": on_failure,
    }
    return Traced(subject, signature.result_type, settings)


def stand_in_for(graph: Graph) -> Callable[..., Any]:
    """The function of a workflow that is data."""
    defaults = {name: schema.get("default") for name, schema in graph.parameters.items() if name not in graph.required}
    function = stand_in(graph.name, dict.fromkeys(graph.parameters, Any), "a workflow", defaults=defaults)
    function.__doc__ = graph.description
    return function
