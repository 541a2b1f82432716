"""Annotations of functions as JSON schemas."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from rota.domain.workflow.check import Callee
from rota.domain.workflow.schema import LIST, Schema, list_of
from rota.executors.signature import Signature


def callee_of(signature: Signature, result: Any) -> Callee:
    """The parameters and the result of a job or workflow, for the checks."""
    return Callee(
        parameters={name: schema_of(kind) for name, kind in signature.kinds().items()},
        required=frozenset(signature.required),
        takes_others=signature.takes_others,
        result=schema_of(result),
        first=signature.first,
    )


def schema_of(kind: Any) -> Schema:
    """The schema of a type; the empty one if JSON cannot carry it."""
    try:
        return _schema_of(kind)
    except TypeError:  # A type with unhashable arguments, such as Annotated[int, {}].
        return _schema_of.__wrapped__(kind)


@lru_cache(maxsize=1000)
def _schema_of(kind: Any) -> Schema:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in (Iterable, Iterator) or origin in (Iterable, Iterator):
        return list_of(schema_of(arguments[0])) if arguments else LIST
    try:
        return msgspec.json.schema(kind)
    except Exception:
        return {}
