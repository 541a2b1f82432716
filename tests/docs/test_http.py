"""The page on the HTTP API has every route but those of the dashboard, with its scope and its sentence."""

from __future__ import annotations

from rota.api.route import BASE, Route
from rota.api.routes import ROUTES
from tests.docs.pages import pages


def line(route: Route) -> str:
    path = route.full_path.removeprefix(BASE) if route.base == BASE else route.full_path
    return f"| {route.method} | `{path}` | {route.needs} | {route.summary} |"


def listed() -> str:
    served = [route for route in ROUTES if not route.is_page]
    routes = sorted(served, key=lambda route: (route.base, route.path.split("/")[1], route.path, route.method))
    return "\n".join(["| method | path | needs | |", "|---|---|---|---|", *map(line, routes)])


def test_every_route_is_listed() -> None:
    """`python -m tests.docs.test_http` prints the table."""
    assert listed() in pages()["docs/http.md"]


if __name__ == "__main__":
    print(listed())
