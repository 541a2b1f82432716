"""What the routes of jobs share: finding the job of a path, checking a body and its scope, showing what was written."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rota.api import definitions, job_targets, problem, revision, templating
from rota.api.answer import Answer, created, shown
from rota.api.call import Call
from rota.api.dry_run import would
from rota.api.job_body import JobBody
from rota.api.problem import Problem
from rota.api.route import BASE
from rota.domain.errors import NameTaken
from rota.executors import kinds
from rota.ops import job_definitions
from rota.ops.job_definitions import JobToStore, Written
from rota.store import definition_reader as reader
from rota.store.definition_reader import JobRow
from rota.store.port import Tx, View
from rota.views import job_detail, job_forecast


async def written(call: Call, op: Callable[[Tx], Written]) -> Answer:
    """Runs a write of a job, and shows the job as it is then."""
    try:
        return await call.act(lambda tx, done: _shown(call, tx, done), op)
    except NameTaken as taken:
        raise Problem("name_taken", str(taken), existing={"jobId": taken.holder}) from None


def _shown(call: Call, tx: Tx, done: Written) -> Answer:
    warnings = job_forecast.warnings(tx, call.namespace, done.row)
    shape = job_detail.job(tx, call.namespace, done.row, warnings)
    if call.is_dry_run:
        forecast = msgspec.to_builtins(job_forecast.forecast(tx, call.namespace, done.row))
        return would({**forecast, "warnings": warnings, "job": shape})
    headers = revision.header(done.row.revision)
    if not done.is_new:
        return shown(shape, headers=headers)
    return created(shape, f"{BASE}/jobs/{done.row.id}", headers=headers)


def wanted(call: Call, tx: Tx, body: JobBody, template: str | None = None) -> JobToStore:
    """What the body describes, if the caller may define a job with such a target."""
    if body.template is not None:
        body, template = templating.filled(tx, call.namespace, body)
    made = definitions.wanted(tx, call.namespace, body, call.services.settings, template)
    call.require(*job_targets.scopes(made.definition.target))
    return made


def found(view: View, call: Call, app: str | None) -> JobRow:
    """The job of the path, also a deleted one. A workflow is none."""
    try:
        row = reader.find(view, call.namespace, call.path["job"], app)
    except reader.Ambiguous as error:
        raise Problem("ambiguous_name", str(error), existing={"jobIds": error.ids}) from None
    if row is None or row.about.target.get("kind") == kinds.WORKFLOW:
        raise problem.not_found()
    return row


def condition(call: Call) -> job_definitions.Condition:
    conditions = revision.conditions(call.headers)
    return lambda row: conditions.check(None if row is None else row.revision)
