"""A template of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from rota.domain.instant import moment
from rota.store.definition_reader import TemplateRow
from rota.views.shape import Shape


class Template(Shape, frozen=True):
    """`job` is a definition in which `{"$parameter": "month"}` stands for a value; `version` counts its changes."""

    name: str
    version: int
    description: str
    parameters: dict[str, Any]
    """The parameters by name: type, default, bounds and choices."""
    job: dict[str, Any]
    """The definition of the jobs that are made of it."""
    created_at: datetime
    created_by: str
    updated_at: datetime


def template(row: TemplateRow) -> Template:
    content = msgspec.json.decode(row.content, type=dict[str, Any])
    return Template(
        name=row.name,
        version=row.version,
        description=content.get("description") or "",
        parameters=content.get("parameters") or {},
        job=content["job"],
        created_at=moment(row.created_at),
        created_by=row.created_by,
        updated_at=moment(row.updated_at),
    )
