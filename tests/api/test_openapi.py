"""The OpenAPI document: complete, and made from the table of routes."""

from __future__ import annotations

import httpx

from rota.api.problem import STATUS
from rota.api.routes import ROUTES


async def test_every_route_is_in_the_document(client: httpx.AsyncClient) -> None:
    found = (await client.get("/openapi.json")).json()
    assert found["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert listed == {(route.method, route.full_path) for route in ROUTES if route.media != ("text/html",)}


def test_codes_of_routes_are_known() -> None:
    assert {code for route in ROUTES for code in route.codes} <= STATUS.keys()
