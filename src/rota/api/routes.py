"""The table of all routes: what the modules in `api/resources/` declare with `route`, in the order of their names."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from rota.api import resources
from rota.api.resources.dashboard import UNKNOWN
from rota.api.route import DECLARED, Route, Table

for _found in iter_modules(resources.__path__):
    import_module(f"{resources.__name__}.{_found.name}")
ROUTES: list[Route] = sorted(DECLARED, key=lambda route: route.handler.__module__)


def table() -> Table:
    return Table(ROUTES, UNKNOWN)
