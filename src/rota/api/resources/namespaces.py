"""Namespaces: tenants, how long each keeps its history, and its quotas."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.api import listing, problem
from rota.api.answer import Answer, created, no_content, shown
from rota.api.call import Call
from rota.api.patch import patch_of
from rota.api.problem import Problem
from rota.api.query import Page
from rota.api.route import BASE, NoQuery, route
from rota.domain import duration, names
from rota.domain.access import Scope
from rota.domain.quota import NONE, Quotas
from rota.domain.retention import FOREVER
from rota.ops import quotas as quota_ops
from rota.ops import retention as ops
from rota.store.port import Tx
from rota.views import namespace as views
from rota.views.namespace import Namespace, NamespaceDetail

Length = float | int | str


class NamespaceIn(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """`retention` is a duration, or 0 for no end; without it the setting of the server decides."""

    retention: Length | None = None
    quotas: Quotas | None = None


NamespacePatch = patch_of(NamespaceIn, "NamespacePatch")

_EXAMPLE: dict[str, Any] = {"retention": "90d", "quotas": {"executionsPerS": 100, "maxDepth": 10000}}


@route("GET /namespaces", Scope.ADMIN, answer=listing.of(Namespace))
async def list_namespaces(call: Call, query: Page) -> Answer:
    """All namespaces, by name."""
    _check_of_all(call)
    found = await call.read(views.namespaces, call.services.settings.retention_days)
    return listing.of_all(call, query, Namespace, found, lambda one: [one.name])


@route("GET /namespaces/{namespace}", Scope.ADMIN, answer=NamespaceDetail)
async def get(call: Call, query: NoQuery) -> Answer:
    """A namespace, its quotas, and what it uses of them.

    A caller sees its own namespaces; one of all sees every one.
    """
    name = call.path["namespace"]
    if not call.grant.reaches(name):
        raise problem.not_found()
    found = await call.read(views.namespace, name, call.services.settings.retention_days)
    if found is None:
        raise problem.not_found()
    return shown(found)


@route("PUT /namespaces/{namespace}", Scope.ADMIN, answer=NamespaceDetail, codes=("bad_definition",), example=_EXAMPLE)
async def put(call: Call, query: NoQuery, body: NamespaceIn) -> Answer:
    """Makes a namespace, or sets its retention and quotas."""
    _check_of_all(call)
    name = names.check(call.path["namespace"], "a namespace's name")

    def apply(tx: Tx) -> bool:
        is_new = views.namespace(tx, name, 0) is None
        quota_ops.set_quotas(tx, name, body.quotas or NONE, call.actor)
        ops.set_retention(tx, name, _kept(body.retention), call.actor)
        return is_new

    def show(tx: Tx, is_new: bool) -> Answer:
        found = views.namespace(tx, name, call.services.settings.retention_days)
        return created(found, f"{BASE}/namespaces/{name}") if is_new else shown(found)

    return await call.act(show, apply)


@route(
    "PATCH /namespaces/{namespace}",
    Scope.ADMIN,
    body=NamespacePatch,
    answer=NamespaceDetail,
    codes=("bad_definition",),
    example=_EXAMPLE,
)
async def change(call: Call, query: NoQuery, body: msgspec.Struct) -> Answer:
    """Changes the retention or the quotas of a namespace.

    Members that are not named stay as they are; null puts the default back.
    """
    _check_of_all(call)
    name = call.path["namespace"]
    given = {member: value for member, value in msgspec.structs.asdict(body).items() if value is not msgspec.UNSET}

    def apply(tx: Tx) -> None:
        if views.namespace(tx, name, 0) is None:
            raise problem.not_found()
        if "quotas" in given:
            quota_ops.set_quotas(tx, name, given["quotas"] or NONE, call.actor)
        if "retention" in given:
            ops.set_retention(tx, name, _kept(given["retention"]), call.actor)

    days = call.services.settings.retention_days
    return await call.act(lambda tx, _: shown(views.namespace(tx, name, days)), apply)


@route("DELETE /namespaces/{namespace}", Scope.ADMIN, status=204, codes=("conflict",))
async def remove(call: Call, query: NoQuery) -> Answer:
    """Removes an empty namespace."""
    _check_of_all(call)

    def show(tx: Tx, is_removed: bool) -> Answer:
        if not is_removed:
            raise problem.not_found()
        return no_content()

    return await call.act(show, ops.remove_namespace, call.path["namespace"], call.actor)


def _check_of_all(call: Call) -> None:
    if not call.grant.is_of_all:
        raise Problem("wrong_scope", "this needs the scope admin in all namespaces (*)")


def _kept(given: Length | None) -> int | None:
    if given is None:
        return None
    seconds = round(duration.seconds(given, "retention"))
    return FOREVER if seconds == 0 else seconds
