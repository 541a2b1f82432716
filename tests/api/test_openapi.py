"""The OpenAPI document: complete, and made from the table of routes."""

from __future__ import annotations

import httpx

from rota.api import openapi_answers as answers
from rota.api.openapi import document
from rota.api.openapi_schemas import _structs
from rota.api.problem import STATUS, ProblemBody
from rota.api.routes import ROUTES
from rota.views.members import MEMBERS


async def test_every_route_is_in_the_document(client: httpx.AsyncClient) -> None:
    found = (await client.get("/openapi.json")).json()
    assert found["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert listed == {(route.method, route.full_path) for route in ROUTES if route.media != ("text/html",)}


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


def test_a_member_of_a_body_that_may_be_left_out_may_be_null() -> None:
    bodies = document(ROUTES, "1")["components"]["schemas"]
    assert {"type": "null"} in bodies["RotateIn"]["properties"]["overlap"]["anyOf"]
    assert bodies["Replay"]["properties"]["force"]["type"] == ["boolean", "null"]


def test_a_list_has_no_etag() -> None:
    listing = document(ROUTES, "1")["paths"]["/api/v1/templates"]["get"]
    assert "If-None-Match" not in {parameter["name"] for parameter in listing["parameters"]}
