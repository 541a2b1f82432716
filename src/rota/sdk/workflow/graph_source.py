"""Where the graph of a workflow comes from: a function that is traced, or data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from rota.domain.errors import WorkflowError
from rota.domain.workflow import graph as graphs
from rota.domain.workflow.check import Callee, Problem, check
from rota.domain.workflow.graph import Graph, Step
from rota.sdk.workflow import tracing
from rota.sdk.workflow.annotation import callee_of
from rota.sdk.workflow.place import Place
from rota.sdk.workflow.tracing import Subject

_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")


class Traced:
    """A workflow that is a function."""

    def __init__(self, subject: Subject, result: Any, settings: Mapping[str, Any]) -> None:
        """`settings` are the fields of the graph that the function does not decide."""
        self._subject, self._result, self._settings = subject, result, settings
        self._places: list[Place] = []

    def problems(self) -> list[WorkflowError]:
        return tracing.problems(self._subject)

    def make(self) -> Graph | list[WorkflowError]:
        trace = tracing.traced(self._subject)
        if isinstance(trace, list):
            return trace
        self._places = [trace.places[step.id] for step in trace.steps]
        signature = self._subject.signature
        try:
            parameters = {
                name: schema | self._default(name) if name not in signature.required else schema
                for name, schema in self._subject.parameters.items()
            }
        except WorkflowError as error:
            return [error]
        required = tuple(name for name in parameters if name in signature.required)
        return Graph(
            name=self._subject.name,
            parameters=parameters,
            required=required,
            steps=trace.steps,
            result=trace.result,
            **self._settings,
        )

    def error(self, problem: Problem) -> WorkflowError:
        if problem.step is not None:
            at = self._places[problem.step]
        else:
            at = self._subject.end() if problem.pointer == "/result" else self._subject.start()
        return at.error(self._subject.name, problem.message)

    def callee(self) -> Callee:
        return callee_of(self._subject.signature, self._result)

    def _default(self, name: str) -> dict[str, Any]:
        """In the schema, so that a run can be started without the code."""
        try:
            return {"default": msgspec.to_builtins(self._subject.signature.defaults()[name], str_keys=True)}
        except (TypeError, ValueError) as error:
            message = f"the default of {name!r} cannot be stored as JSON: {error}"
            raise self._subject.start().error(self._subject.name, message) from None


class Data:
    """A workflow that is data."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def problems(self) -> list[WorkflowError]:
        return []

    def make(self) -> Graph:
        return self.graph

    def error(self, problem: Problem) -> WorkflowError:
        place = problem.pointer or "/"
        return WorkflowError(f"workflow {self.graph.name!r}: {place}: {problem.message}", pointer=problem.pointer)

    def callee(self) -> Callee:
        return Callee(parameters=self.graph.parameters, required=frozenset(self.graph.required))


def read(data: Mapping[str, Any] | str) -> Data:
    """The workflow that data describes: JSON values, or a text of JSON or YAML. A WorkflowError names the place."""
    if isinstance(data, str):
        data = _parsed(data)
    try:
        graph = graphs.decode(msgspec.json.encode(data))
    except msgspec.ValidationError as error:
        raise _misfit(str(error)) from None
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise WorkflowError(f"the workflow is not JSON: {error}") from None
    if "required" not in data:
        needed = (name for name, one in graph.parameters.items() if not isinstance(one, dict) or "default" not in one)
        graph = msgspec.structs.replace(graph, required=tuple(needed))
    made = Data(graph)
    for problem in check(graph):
        raise made.error(problem)
    return made


def _parsed(text: str) -> Any:
    try:
        if text.lstrip().startswith("{"):
            return msgspec.json.decode(text)
        return msgspec.yaml.decode(text)
    except ImportError:
        raise WorkflowError("a workflow in YAML needs PyYAML: install rota[yaml], or write it as JSON") from None
    except msgspec.MsgspecError as error:
        raise WorkflowError(f"the workflow is neither JSON nor YAML: {' '.join(str(error).split())}") from None


def _misfit(message: str) -> WorkflowError:
    """msgspec's message with a JSON pointer in front: /steps/0/with: expected an object, got an int."""
    found = _AT.search(message)
    path = re.sub(r"\[\.\.\.\].*", "", found[1]) if found else ""
    pointer = "".join(f"/{part}" for part in re.findall(r"[^.\[\]]+", path))
    plain = _AT.sub("", message)
    if unknown := _UNKNOWN.search(plain):
        kind = Step if pointer.startswith("/steps/") else Graph
        near = get_close_matches(unknown[1], [field.encode_name for field in msgspec.structs.fields(kind)], 1)
        hint = f": did you mean {near[0]!r}?" if near else ""
        pointer, plain = f"{pointer}/{unknown[1]}", f"there is no field {unknown[1]!r}{hint}"
    return WorkflowError(f"{pointer or '/'}: {plain[0].lower()}{plain[1:]}", pointer=pointer)
