"""The OpenAPI document: complete, and made from the table of routes."""

from __future__ import annotations

import httpx
import pytest

from rota.api import openapi_answers as answers
from rota.api.openapi import document
from rota.api.openapi_schemas import _structs
from rota.api.problem import STATUS, ProblemBody
from rota.api.resources import system
from rota.api.routes import ROUTES
from rota.views.members import MEMBERS


async def test_every_route_is_in_the_document(client: httpx.AsyncClient) -> None:
    found = (await client.get("/openapi.json")).json()
    assert found["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert listed == {(route.method, route.full_path) for route in ROUTES if route.media != ("text/html",)}


async def test_the_document_is_made_once(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making it blocks the event loop, and with it all other requests, for a fifth of a second."""
    first = await client.get("/openapi.json")
    monkeypatch.delattr(system, "document")
    assert (await client.get("/openapi.json")).content == first.content


def test_every_member_and_parameter_has_a_description() -> None:
    found = document(ROUTES, "1")
    missing = [
        f"{name}.{member}"
        for name, schema in found["components"]["schemas"].items()
        for member, about in schema.get("properties", {}).items()
        if not about.get("description")
    ]
    missing += [
        f"{operation['operationId']} {one['name']}"
        for methods in found["paths"].values()
        for operation in methods.values()
        for one in operation["parameters"]
        if not one.get("description")
    ]
    assert missing == [], "write a docstring beside the field; api/member_words.py reads it"


def test_a_member_of_a_body_with_a_default_may_be_null() -> None:
    """A server takes null as an absent member. In an answer a member without `None` is never null."""
    schemas = document(ROUTES, "1")["components"]["schemas"]
    assert {"type": "null"} in schemas["RotateIn"]["properties"]["overlap"]["anyOf"]
    assert {"type": "null"} in schemas["HookIn"]["properties"]["description"]["anyOf"]
    assert schemas["HookIn"]["properties"]["name"]["type"] == "string"
    assert schemas["HookChange"]["properties"]["name"]["type"] == "string"
    assert schemas["Token"]["properties"]["name"]["type"] == "string"


def test_only_a_definition_has_a_tag_and_not_a_list() -> None:
    paths = document(ROUTES, "1")["paths"]
    assert "304" in paths["/api/v1/templates/{template}"]["get"]["responses"]
    of_list = paths["/api/v1/templates"]["get"]
    assert "304" not in of_list["responses"]
    assert "If-None-Match" not in {one["name"] for one in of_list["parameters"]}


def test_a_patch_describes_members_as_the_body_that_it_patches() -> None:
    schemas = document(ROUTES, "1")["components"]["schemas"]
    of_patch, of_body = schemas["SchedulePatch"]["properties"], schemas["NewSchedule"]["properties"]
    assert {name: of_patch[name]["description"] for name in of_patch} == {
        name: of_body[name]["description"] for name in of_patch
    }


def test_words_for_many_members_are_used() -> None:
    """A field that is renamed must not leave its words behind."""
    given = {kind for route in ROUTES for kind in (route.query, route.body, *answers.kinds(route)) if kind is not None}
    names = {name for kind in _structs([*given, ProblemBody]) for name in kind.__struct_fields__}
    assert MEMBERS.keys() <= names


def test_codes_of_routes_are_known() -> None:
    assert {code for route in ROUTES for code in route.codes} <= STATUS.keys()
