"""The versions of a job, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from rota.domain import job
from rota.domain.instant import moment
from rota.store.definition_reader import JobRow, VersionRow
from rota.views.job_detail import MadeOf, made_of, of_code
from rota.views.shape import Shape


class JobVersion(Shape, frozen=True):
    """A version of a job. Versions count from 1 for each job."""

    version: int
    is_current: bool
    created_at: datetime
    created_by: str | None
    template: MadeOf | None
    definition: dict[str, Any]


class Difference(Shape, frozen=True):
    """A member of a definition that differs; null is a member that is not there."""

    path: str
    """A JSON pointer to what differs."""
    before: Any
    after: Any


def version(row: JobRow, found: VersionRow) -> JobVersion:
    return JobVersion(
        version=found.number - row.base,
        is_current=found.number == row.version,
        created_at=moment(found.created_at),
        created_by=found.created_by,
        template=None if found.template is None else made_of(found.template),
        definition=definition(row, found),
    )


def definition(row: JobRow, found: VersionRow) -> dict[str, Any]:
    if found.source is None:
        about = job.decode(found.definition)
        return of_code(row.app, about, [str(one.ref) for one in about.depends_on])
    return msgspec.json.decode(found.source, type=dict[str, Any])


def differences(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Iterator[Difference]:
    """Each member that differs, by its JSON pointer."""
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name), after.get(name)
        where = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(one, dict) and isinstance(other, dict):
            yield from differences(one, other, where)
        elif one != other:
            yield Difference(where, one, other)
