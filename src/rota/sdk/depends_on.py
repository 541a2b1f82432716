"""`depends_on=` of jobs and workflows, as the edges of their definition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from rota.domain import dependency, names
from rota.domain.dependency import CountedEnd, JobRef, Upstream
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.domain.job import Definition
from rota.executors.signature import Signature


class Referable(Protocol):
    """A job or a workflow."""

    @property
    def _ref(self) -> JobRef: ...


Named = str | JobRef | Referable
"""A text is a job of the own app."""
DependsOn = Iterable[Named | Mapping[str, str]] | Mapping[Any, str]
"""Jobs whose success starts this one; or by job, which ends do. As data a job is `{"app": …, "job": …}`."""


def with_upstreams(
    definition: Definition, given: Any, arguments: Mapping[str, Any], signature: Signature, app: str, most_bytes: int
) -> Definition:
    """The definition of a job or a workflow with the edges of `depends_on=` and its arguments when these start it."""
    found = upstreams(given, definition.name, app)
    if not found:
        return definition
    try:
        text = signature.encode((), dict(arguments), most_bytes)
    except ArgumentsError as error:
        raise DefinitionError(
            f"job {definition.name!r} is started by other jobs, so arguments= must be what it takes: {error}"
        ) from None
    return msgspec.structs.replace(definition, depends_on=found, arguments=text)


def upstreams(given: Any, job: str, app: str) -> list[Upstream]:
    """Sorted."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DefinitionError(f"job {job!r}: depends_on must be a list of jobs, such as ['extract'], not {given!r}")
    pairs = given.items() if isinstance(given, Mapping) else [(one, None) for one in given]
    found = sorted(_upstream(one, outcome, job, app) for one, outcome in pairs)
    labels = [dependency.label(one.ref, app) for one in found]
    if twice := sorted({name for name in labels if labels.count(name) > 1}):
        raise DefinitionError(f"job {job!r}: depends_on names {twice[0]!r} twice")
    return found


def _upstream(one: Any, outcome: Any, job: str, app: str) -> Upstream:
    if isinstance(one, Mapping):
        if unknown := sorted(one.keys() - {"app", "job", "outcome"}):
            raise DefinitionError(f"job {job!r}: depends_on has app, job and outcome, not {unknown[0]!r}")
        one, outcome = JobRef(one.get("app", app), one.get("job", "")), one.get("outcome")
    ref = JobRef(app, one) if isinstance(one, str) else one if isinstance(one, JobRef) else getattr(one, "_ref", None)
    if not isinstance(ref, JobRef):
        raise DefinitionError(f"job {job!r}: depends_on has names, jobs and JobRef(app, job), not {one!r}")
    names.check(ref.app, f"job {job!r}: depends_on: an app's name")
    names.check(ref.job, f"job {job!r}: depends_on: a job's name")
    if outcome is not None and outcome not in CountedEnd.__members__.values():
        choices = ", ".join(member.value for member in CountedEnd)
        raise DefinitionError(f"job {job!r}: depends_on: the outcome must be one of {choices}, not {outcome!r}")
    return Upstream(ref.app, ref.job, CountedEnd(outcome or CountedEnd.SUCCESS))
