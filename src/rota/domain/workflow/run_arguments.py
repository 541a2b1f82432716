"""The arguments of a run, checked against the parameters in its graph.

The signature in the code cannot check them: the run may have an older version of the workflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from rota.domain import payload
from rota.domain.errors import ArgumentsError
from rota.domain.job_parameters import Misfit
from rota.domain.workflow import schema
from rota.domain.workflow.graph import Graph


def encode(graph: Graph, args: tuple[Any, ...], kwargs: Mapping[str, Any], most_bytes: int) -> str:
    """The arguments of a call as JSON text, all by name: a graph does not store the order of its parameters."""
    if args:
        takes = ", ".join(f"{name}=…" for name in graph.parameters)
        raise ArgumentsError(f"{graph.name}(): give the arguments of a chosen version by name: {takes}")
    text = payload.encode(dict(kwargs), f"{graph.name}(): the arguments", most_bytes)
    check(graph, text)
    return text


def check(graph: Graph, text: str) -> None:
    """Raises an ArgumentsError that names the first argument which is unknown, is missing or has the wrong type."""
    for _, words in misfits(msgspec.json.decode(text), graph.parameters, graph.required):
        raise ArgumentsError(f"{graph.name}(): {words}")


def misfits(given: Mapping[str, Any], parameters: Mapping[str, schema.Schema], required: Sequence[str]) -> list[Misfit]:
    """Everything that is wrong with the arguments."""
    found, takes = list[Misfit](), f"it takes ({', '.join(parameters)})"
    for name, value in given.items():
        if name not in parameters:
            near = get_close_matches(name, parameters, 1)
            hint = f", did you mean {near[0]!r}?" if near else ";"
            found.append((name, f"there is no argument {name!r}{hint} {takes}"))
        elif not schema.fits(schema.of_literal(value), parameters[name]):
            wanted, got = schema.words(parameters[name]), schema.type_of(value)
            found.append((name, f"argument {name!r}: expected {wanted}, got {got}"))
    missing = [name for name in required if name not in given]
    return [*found, *((name, f"missing argument {name!r}; {takes}") for name in missing)]
