"""A workflow from a file, for an app whose jobs only the database knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.domain.job import Definition
from rota.domain.workflow.check import Callee, check
from rota.domain.workflow.graph import Graph, to_data
from rota.executors import kinds
from rota.sdk.workflow.declaring import from_data


def definition_from_file(data: Mapping[str, Any] | str, known: Mapping[str, Definition]) -> Definition:
    """The definition of the workflow that JSON or YAML describes, or JSON values. `known` are the definitions of the
    app, by name.

    The types of parameters and results are those of code, which is not here: only names are checked.
    """
    declared = from_data(data)
    graph = declared.source.make()
    assert isinstance(graph, Graph)  # `from_data` has raised the errors in the data itself.
    jobs = {name: _callee(one) for name, one in known.items() if not _is_workflow(one)}
    workflows = {name: _callee(one) for name, one in known.items() if _is_workflow(one)}
    workflows[graph.name] = declared.source.callee()
    for problem in check(graph, jobs, workflows):
        raise declared.source.error(problem)
    target = {"kind": kinds.WORKFLOW, "graph": to_data(graph)}
    return msgspec.structs.replace(declared.definition, target=target)


def _is_workflow(definition: Definition) -> bool:
    return bool(definition.target.get("kind") == kinds.WORKFLOW)


def _callee(definition: Definition) -> Callee:
    about = definition.parameters
    return Callee(
        parameters={name: {} for name in about},
        required=frozenset(name for name, one in about.items() if one.get("required")),
        takes_others=definition.takes_others,
        first=definition.first_parameter,
    )
