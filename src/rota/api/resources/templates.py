"""Templates of jobs. A parameter becomes a value, never a part of a text."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rota.api import listing, problem, revision, templating
from rota.api.answer import Answer, created, no_content, shown
from rota.api.call import Call
from rota.api.dry_run import Dry, would
from rota.api.job_body import TemplateBody, TemplatePatch
from rota.api.problem import Problem, bad_member
from rota.api.query import Page
from rota.api.route import BASE, NoQuery, route
from rota.domain.access import Scope
from rota.domain.errors import DefinitionError
from rota.ops import templates as ops
from rota.store import definition_reader as reader
from rota.store.definition_reader import TemplateRow
from rota.store.port import Tx, View
from rota.views import template as views
from rota.views.template import Template


class TemplatesQuery(Page, frozen=True, kw_only=True, rename="camel"):
    order: Literal["asc", "desc"] = "asc"


_EXAMPLE = {
    "name": "backup",
    "parameters": {"host": {"type": "string"}},
    "job": {"command": ["backup", {"$parameter": "host"}], "schedule": "0 3 * * *"},
}
_CODES = ("bad_definition", "precondition_failed")


@route("GET /templates", Scope.READ, answer=listing.of(Template))
async def list_templates(call: Call, query: TemplatesQuery) -> Answer:
    """Templates by name."""
    at = listing.position(call, query)
    name = None if at.key is None else at.key[0]
    is_down = (query.order == "desc") != at.is_back

    def read(view: View) -> list[TemplateRow]:
        return reader.templates(view, call.namespace, name, query.limit + 1, is_down=is_down)

    rows = await call.read(read)
    items = [views.template(row) for row in rows[: query.limit]]
    return listing.page(call, query, Template, items, lambda one: [one.name], has_more=len(rows) > query.limit)


@route("POST /templates", Scope.DEFINE, answer=Template, status=201, codes=(*_CODES, "name_taken"), example=_EXAMPLE)
async def create(call: Call, query: Dry, body: TemplateBody) -> Answer:
    """Creates a template."""
    return await _write(call, body.name, templating.content(body.job, body.parameters, body.description), only_new=True)


@route("GET /templates/{template}", Scope.READ, answer=Template)
async def get(call: Call, query: NoQuery) -> Answer:
    """A template."""
    row = await call.read(reader.template, call.namespace, call.path["template"])
    if row is None:
        raise problem.not_found()
    same = revision.not_modified(call.headers, row.version)
    return same or shown(views.template(row), headers=revision.header(row.version))


@route("PUT /templates/{template}", Scope.DEFINE, answer=Template, codes=_CODES, example=_EXAMPLE)
async def put(call: Call, query: Dry, body: TemplatePatch) -> Answer:
    """Creates or replaces a template. Jobs that were made of it stay as they are."""
    if body.job is None:
        raise bad_member("/job", "job is missing", "missing_field")
    return await _write(call, _named(call, body), templating.content(body.job, body.parameters, body.description))


@route(
    "PATCH /templates/{template}",
    Scope.DEFINE,
    answer=Template,
    codes=_CODES,
    example={"description": "a nightly backup of one host"},
)
async def patch(call: Call, query: Dry, body: TemplatePatch) -> Answer:
    """Replaces the named members of a template."""
    name = _named(call, body)
    given = msgspec.json.decode(call.raw_body, type=dict[str, Any])
    row = await call.read(reader.template, call.namespace, name)
    if row is None:
        raise problem.not_found()
    known = msgspec.json.decode(row.content, type=dict[str, Any])
    whole = {**known, **{member: value for member, value in given.items() if member != "name"}}
    if whole.get("job") is None:
        raise bad_member("/job", "job is missing", "missing_field")
    content = templating.content(whole["job"], whole.get("parameters"), whole.get("description"))
    return await _write(call, name, content, based_on=row.version)


@route("DELETE /templates/{template}", Scope.DEFINE, status=204, codes=("precondition_failed",))
async def delete(call: Call, query: Dry) -> Answer:
    """Deletes a template. Jobs that were made of it stay."""

    def remove(tx: Tx) -> None:
        if not ops.delete(tx, call.namespace, call.path["template"], call.actor, _condition(call)):
            raise problem.not_found()

    return await call.act(lambda tx, _: would({}) if call.is_dry_run else no_content(), remove)


async def _write(
    call: Call, name: str, content: dict[str, Any], *, only_new: bool = False, based_on: int | None = None
) -> Answer:
    call.require(*templating.check(content["job"]))
    holds = _condition(call, based_on)

    def show(tx: Tx, done: tuple[TemplateRow, bool]) -> Answer:
        row, is_new = done
        shape, headers = views.template(row), revision.header(row.version)
        if call.is_dry_run:
            return would(shape)
        return (
            created(shape, f"{BASE}/templates/{row.name}", headers=headers) if is_new else shown(shape, headers=headers)
        )

    try:
        return await call.act(show, ops.put, call.namespace, name, content, call.actor, holds, only_new=only_new)
    except DefinitionError as error:
        raise bad_member("/job", str(error), "bad_definition") from None


def _condition(call: Call, based_on: int | None = None) -> ops.Condition:
    conditions = revision.conditions(call.headers)

    def holds(row: TemplateRow | None) -> None:
        conditions.check(None if row is None else row.version)
        if based_on is not None and (row is None or row.version != based_on):
            raise Problem("precondition_failed", "the template was changed meanwhile: read it again, and repeat")

    return holds


def _named(call: Call, body: TemplatePatch) -> str:
    name = call.path["template"]
    if body.name not in (None, name):
        raise bad_member("/name", f"the name is that of the path, {name}, or left out")
    return name
