"""The arguments of a run, checked against the parameters of its graph: the code of that version may not be here."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from rota.domain import payload
from rota.domain.errors import ArgumentsError
from rota.domain.workflow import schema
from rota.domain.workflow.graph import Graph


def encode(graph: Graph, args: tuple[Any, ...], kwargs: Mapping[str, Any], most_bytes: int) -> str:
    """The arguments of a call as JSON text. The order of the parameters is not stored, so all are given by name."""
    if args:
        takes = ", ".join(f"{name}=…" for name in graph.parameters)
        raise ArgumentsError(f"{graph.name}(): give the arguments of a chosen version by name: {takes}")
    text = payload.encode(dict(kwargs), f"{graph.name}(): the arguments", most_bytes)
    check(graph, text)
    return text


def check(graph: Graph, text: str) -> None:
    """Raises an ArgumentsError that names the first argument of a run which is unknown, missing or does not fit."""
    given, takes = msgspec.json.decode(text), f"it takes ({', '.join(graph.parameters)})"
    for name, value in given.items():
        if name not in graph.parameters:
            near = get_close_matches(name, graph.parameters, 1)
            hint = f", did you mean {near[0]!r}?" if near else ";"
            raise ArgumentsError(f"{graph.name}(): there is no argument {name!r}{hint} {takes}")
        kind = graph.parameters[name]
        if not schema.fits(schema.of_literal(value), kind):
            wanted, got = schema.words(kind), schema.type_of(value)
            raise ArgumentsError(f"{graph.name}(): argument {name!r}: expected {wanted}, got {got}")
    for name in graph.required:
        if name not in given:
            raise ArgumentsError(f"{graph.name}(): missing argument {name!r}; {takes}")
