"""Jobs and workflows as steps: `job.step(…)`, `map`, `starmap` and `after`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Self, TypeVar, cast

from rota.domain import names, overrides, rank, retry
from rota.domain.duration import positive_seconds, seconds
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.domain.headers import checked_headers
from rota.domain.workflow.check import Callee
from rota.domain.workflow.graph import Template
from rota.domain.workflow.schema import list_of
from rota.executors.signature import Signature
from rota.sdk.options import STEP_ONLY, checked_tags
from rota.sdk.workflow import build as builds
from rota.sdk.workflow.annotation import callee_of, schema_of
from rota.sdk.workflow.build import Build
from rota.sdk.workflow.order import After, Rule
from rota.sdk.workflow.templates import template_of
from rota.sdk.workflow.value import Symbol, Value, as_value

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")
A = TypeVar("A")
_ITEM = object()
_NOT_FOR_STEPS = {
    "key": "a step has its run's key: give key= when the workflow is started",
    "unique": "unique= is for executions that are enqueued: give it when the workflow is started",
    "at": "at= is a time on the clock: use delay=, or start the workflow at that time",
    "start_by": "start_by= is a time on the clock: give the workflow a timeout=",
    "version": "version= is for a run: a step runs the version in force",
    "start_within": "start_within= is for executions that are enqueued: give the workflow a timeout=",
}
_NOT_FOR_WORKFLOWS = {
    "queue": "a workflow has no queue: set it for the jobs of its steps",
    "retry": "a workflow is not retried as a whole: set it for the jobs of its steps",
    "timeout": "set it with @app.workflow(timeout=…)",
    "undo": "a sub-workflow is undone by the undo= of its own steps",
    "undo_failed": "a sub-run that does not succeed undoes its own steps",
}


class Stepping(NamedTuple):
    """The facts about a job or workflow that a step of it needs."""

    app: str
    name: str
    is_workflow: bool
    signature: Signature
    result: Any
    options: Mapping[str, Any]


class Stepped(Generic[P, T]):
    """The part of a job and of a workflow that the function of a workflow uses."""

    _after: After | None = None

    def _stepping(self) -> Stepping:
        raise NotImplementedError

    def _callee(self) -> Callee:
        """Its parameters and its result, for the checks of workflows that have it as a step."""
        about = self._stepping()
        return callee_of(about.signature, about.result)

    def step(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Adds a step to the workflow that is being built. Returns what stands for its result."""
        build, about = self._begun("step")
        fields: dict[str, Any] = {}
        with build.continuing():
            fields["arguments"] = _templates(build, _bound(build, about, args, kwargs))
        return cast("T", self._added(build, about, fields, is_map=False))

    def map(self: Stepped[Concatenate[A, Q], T], items: Iterable[A], /, *args: Q.args, **kwargs: Q.kwargs) -> list[T]:
        """Adds a step that runs once per item, in parallel. The first parameter takes the item."""
        build, about = self._begun("map")
        fields: dict[str, Any] = {"map": []}
        with build.continuing():
            fields = _map_fields(build, about, items, args, kwargs)
        return cast("list[T]", self._added(build, about, fields, is_map=True))

    def starmap(self, calls: Iterable[Mapping[str, Any] | tuple[Any, ...]], /) -> list[T]:
        """Adds a step that runs once per call: a dict of arguments by name, or a tuple of positional ones."""
        build, about = self._begun("starmap")
        fields: dict[str, Any] = {"map": []}
        with build.continuing():
            is_known = as_value(calls) is None
            if is_known:
                calls = [_call(build, about, call) for call in calls]
            fields = {"map": _items(build, calls), "positional": () if is_known else about.signature.positional}
        return cast("list[T]", self._added(build, about, fields, is_map=True))

    def after(self, *steps: object, rule: Rule = "all_success") -> Self:
        """The same job for one step, which starts when these steps have ended as `rule` says."""
        changed = copy.copy(self)
        changed._after = After.of(self._after, self._stepping().name, ".step(…)", steps, rule)
        return changed

    def _begun(self, verb: str) -> tuple[Build, Stepping]:
        about = self._stepping()
        instead = "use start(…)" if about.is_workflow else f"use {about.name}.enqueue(…)"
        build = builds.required(f"{about.name}.{verb}(…)", instead)
        if about.app != build.app:
            build.note(f"{about.name} belongs to app {about.app!r}: the steps of a workflow run jobs of its own app")
        return build, about

    def _added(self, build: Build, about: Stepping, fields: dict[str, Any], *, is_map: bool) -> Value:
        fields["workflow" if about.is_workflow else "job"] = about.name
        with build.continuing():
            if self._after is not None:
                fields |= self._after.fields(build)
            fields |= _step_options(build, about, is_map=is_map)
        name = about.options.get("name")
        if name is not None and not isinstance(name, str):
            build.note(f"name must be a text, not {name!r}")
            name = None
        id = build.add(name, about.name, fields)
        result = schema_of(about.result)
        return Value(Symbol(build, {"$": id}, list_of(result) if is_map else result))


def check_enqueue(name: str, options: Mapping[str, Any], verb: str = "enqueue") -> None:
    """Refuses to enqueue while a workflow is being built, and options that only a step has."""
    build = builds.current()
    if build is not None:
        build.refuse(f"this would happen whenever the workflow is built: write {name}.step(…)")
    for option in STEP_ONLY if options else ():
        if options.get(option) is not None:
            raise DefinitionError(f"{option}= is for a step of a workflow, not for {verb}: {name}.options(…).step(…)")


def check_call(name: str) -> None:
    """Refuses a direct call while a workflow is being built."""
    build = builds.current()
    if build is not None:
        build.refuse(f"this would run the job while the workflow is built: write {name}.step(…)")


def _map_fields(
    build: Build, about: Stepping, items: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    first = next(iter(about.signature.kinds()), None)
    if first is None:
        build.refuse(f"{about.name}() has no parameter that could take the item of a map")
    by_name = about.signature.is_by_name(first)
    places, named = (args, {**kwargs, first: _ITEM}) if by_name else ((_ITEM, *args), kwargs)
    given = _bound(build, about, places, named)
    if given.pop(first, None) is not _ITEM:
        build.refuse(f"the first parameter of {about.name}(), {first!r}, takes all arguments: use starmap")
    return {"map": _items(build, items), "item": first, "arguments": _templates(build, given)}


def _bound(build: Build, about: Stepping, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        return about.signature.bind(args, kwargs)
    except ArgumentsError as error:
        build.refuse(str(error))


def _templates(build: Build, arguments: Mapping[str, Any]) -> dict[str, Template]:
    return {name: template_of(value, build, f"argument {name!r}") for name, value in arguments.items()}


def _items(build: Build, items: Any) -> Template:
    if type(items) is Value:
        return template_of(items, build, "the items of the map")
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        build.refuse(f"a map needs a list, not {items!r}")
    return template_of(items if isinstance(items, set | frozenset) else list(items), build, "the items of the map")


def _call(build: Build, about: Stepping, call: Any) -> dict[str, Any]:
    if not isinstance(call, dict | tuple):
        build.refuse(f"starmap takes dicts of arguments by name, or tuples of positional ones, not {call!r}")
    return _bound(build, about, *((), call) if isinstance(call, dict) else (call, {}))


def _step_options(build: Build, about: Stepping, *, is_map: bool) -> dict[str, Any]:
    """The options of `options(…)` as fields of the step."""
    given = {name: value for name, value in about.options.items() if value is not None}
    refused = _NOT_FOR_STEPS | (_NOT_FOR_WORKFLOWS if about.is_workflow else {})
    for name in given:
        if name in refused:
            build.refuse(f"{name}= cannot be set for a step: {refused[name]}")
        if name in ("at_once", "tolerate") and not is_map:
            build.refuse(f"{name}= is for the items of a map: use {about.name}.options(…).map(…)")
    if "undo_failed" in given and "undo" not in given:
        build.refuse("undo_failed= needs undo=, the job that undoes the step")
    if "undo" in given:
        given["undo"] = _undo(build, given["undo"])
    try:
        return {name: _field(name, value) for name, value in given.items() if name != "name"}
    except DefinitionError as error:
        build.refuse(str(error))


def _undo(build: Build, job: object) -> str:
    """The name of the job that undoes a step."""
    about = job._stepping() if isinstance(job, Stepped) else None
    if about is None or about.is_workflow:
        build.refuse(f"undo= takes a job of the app, not {job!r}")
    if about.app != build.app:
        build.refuse(f"{about.name} belongs to app {about.app!r}: undo= takes a job of the workflow's own app")
    if given := sorted(name for name, value in about.options.items() if value is not None):
        build.refuse(f"undo= takes the job as it is declared: {given[0]}= cannot be set for an undo")
    return about.name


def _field(option: str, value: Any) -> Any:
    match option:
        case "undo":
            return value
        case "delay":
            return seconds(value, option)
        case "timeout":
            return positive_seconds(value, option)
        case "priority":
            return rank.level(value)
        case "queue":
            return names.check(value, "a queue's name")
        case "tags":
            return tuple(checked_tags(value))
        case "headers":
            return dict(checked_headers(value))
        case "retry":
            return overrides.described(retry.policy(value))
        case _:
            return _own_option(option, value)


def _own_option(option: str, value: Any) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    fits = {"at_once": is_number, "tolerate": is_number or isinstance(value, str)}
    if not fits.get(option, isinstance(value, bool)):
        wanted = {"at_once": "a number", "tolerate": "a whole number or a percentage such as '5%'"}.get(
            option, "True or False"
        )
        raise DefinitionError(f"{option} must be {wanted}, not {value!r}")
    return value
