"""The versions of a job, and how they differ."""

from __future__ import annotations

from typing import Any, Literal

from rota.api import listing, problem
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.job_requests import found
from rota.api.named import OfApp
from rota.api.query import Page
from rota.api.route import route
from rota.domain.access import Scope
from rota.store import definition_reader as reader
from rota.store.definition_reader import LAST_VERSION, JobRow, VersionRow
from rota.store.port import View
from rota.views import job_form
from rota.views import job_version as views
from rota.views.job_form import JobForm
from rota.views.job_version import Difference, JobVersion


class VersionsQuery(Page, frozen=True, kw_only=True, rename="camel"):
    order: Literal["asc", "desc"] = "desc"
    app: str | None = None


class VersionQuery(OfApp, frozen=True, kw_only=True, rename="camel"):
    """`diff` is another version: the answer is what differs, from that one to this one."""

    diff: int | None = None


@route("GET /jobs/{job}/parameters", Scope.READ, answer=JobForm, codes=("ambiguous_name",))
async def form(call: Call, query: OfApp) -> Answer:
    """The JSON schema of a job's parameters, and the arguments of its last execution, for a form."""

    def read(view: View) -> JobForm:
        return job_form.form(view, call.namespace, found(view, call, query.app))

    return shown(await call.read(read))


@route("GET /jobs/{job}/versions", Scope.READ, answer=listing.of(JobVersion), codes=("ambiguous_name",))
async def list_versions(call: Call, query: VersionsQuery) -> Answer:
    """The versions of a job, newest first."""
    at = listing.position(call, query)
    after = listing.number(at)
    is_up = (query.order == "asc") != at.is_back

    def read(view: View) -> tuple[JobRow, list[VersionRow]]:
        row = found(view, call, query.app)
        edge = None if after is None else row.base + after
        low, high = (edge or 0, LAST_VERSION) if is_up else (0, LAST_VERSION if edge is None else edge)
        return row, reader.versions(view, call.namespace, row, low, high, query.limit + 1, is_up=is_up)

    row, rows = await call.read(read)
    items = [views.version(row, one) for one in rows[: query.limit]]
    return listing.page(
        call, query, JobVersion, items, lambda one: [str(one.version)], has_more=len(rows) > query.limit
    )


@route(
    "GET /jobs/{job}/versions/{version}", Scope.READ, answer=JobVersion | list[Difference], codes=("ambiguous_name",)
)
async def get(call: Call, query: VersionQuery) -> Answer:
    """A version of a job; with diff, how it differs from another one."""

    def read(view: View) -> Any:
        row = found(view, call, query.app)
        this = called(view, call, row, call.path["version"])
        if query.diff is None:
            return views.version(row, this)
        other = called(view, call, row, str(query.diff))
        return list(views.differences(views.definition(row, other), views.definition(row, this)))

    return shown(await call.read(read))


def called(view: View, call: Call, row: JobRow, text: str) -> VersionRow:
    """The version that a path or a parameter names, of a job or a workflow."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 15
    found = numbered(view, call, row, int(text)) if is_number else None
    if found is None:
        raise problem.not_found()
    return found


def numbered(view: View, call: Call, row: JobRow, number: int) -> VersionRow | None:
    """The version that callers know by this number; None if there is none. Callers count from 1 for each job."""
    stored = row.base + number
    return next(iter(reader.versions(view, call.namespace, row, stored - 1, stored + 1, 1)), None)
