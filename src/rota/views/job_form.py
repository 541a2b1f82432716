"""The data of a form that runs a job: the schema of its parameters, and the arguments of its last execution."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain import parameter_schema
from rota.store import definition_reader as reader
from rota.store import execution_reader
from rota.store.definition_reader import JobRow
from rota.store.port import View
from rota.views.shape import Shape
from rota.views.stored_json import decoded

_source = msgspec.json.Decoder(dict[str, Any]).decode


class JobForm(Shape, frozen=True):
    """`schema` is a JSON schema. `arguments` are the usual ones of the job, if it has some."""

    job_id: str
    name: str
    app: str
    version: int
    schema: dict[str, Any]
    """The JSON Schema of the arguments."""
    arguments: dict[str, Any] | None
    """The usual arguments of the job; null if it has none."""
    last_execution_id: str | None
    """The newest execution; null if there is none."""
    last_arguments: Any
    """The arguments of the newest execution; null if there is none."""


def form(view: View, namespace: str, row: JobRow) -> JobForm:
    source = {} if row.source is None else _source(row.source)
    newest = reader.newest(view, namespace, row, 1)
    about = {"error": False, "headers": False, "result": False}
    rows = execution_reader.rows(view, namespace, newest, arguments=True, **about)
    given = source.get("parameters")
    return JobForm(
        job_id=row.id,
        name=row.name,
        app=row.app,
        version=row.version - row.base,
        schema=given if isinstance(given, dict) else parameter_schema.schema(row.about.parameters),
        arguments=source.get("arguments"),
        last_execution_id=rows[0].id if rows else None,
        last_arguments=decoded(rows[0].arguments) if rows else None,
    )
