"""The form of a route, and how a handler declares it.

Dispatch, OpenAPI, the page of the docs and the test of all permissions come from the table of routes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec

from rota.api.query import Page
from rota.domain.access import Scope

if TYPE_CHECKING:
    from rota.api.answer import Answer

BASE = "/api/v1"
SEGMENT = re.compile(r"[A-Za-z0-9_.:~-]+")
"""What a part of a path may have: ids and names need no escaping."""


class Access(StrEnum):
    """What a route needs instead of a scope."""

    OPEN = "open"
    """No token."""
    ANY = "any"
    """Any valid token."""
    READ_OR_OWN = "read or own"
    """The scope `read`; or `enqueue`, for executions that the caller has made itself."""
    OPERATE_OR_OWN = "operate or own"
    """The same with `operate` instead of `read`."""


OF_OWN: Mapping[Scope | Access, Scope] = {
    Access.READ_OR_OWN: Scope.READ,
    Access.OPERATE_OR_OWN: Scope.OPERATE,
}
"""The scope that these need for executions that others have made."""


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A route without parameters."""


Handler = Callable[..., Awaitable["Answer"]]
"""Called with the call, the query, and the body if the route has one."""
H = TypeVar("H", bound=Handler)


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path, which is relative to `/api/v1` unless `base` says otherwise."""

    method: str
    path: str
    needs: Scope | Access
    handler: Handler
    summary: str
    """One sentence, for the documentation."""
    query: type[msgspec.Struct] = NoQuery
    body: Any = None
    """The type of the body; None if there is none. A handler that reads the body itself says so by `raw_body`; `body`
    is then only for the documentation."""
    is_body_optional: bool = False
    raw_body: tuple[str, ...] = ()
    """The media types of a body that the handler reads by itself."""
    answer: Any = None
    """The type of the body of the answer, or a tuple of types; None if it has none."""
    status: int = 200
    also: Mapping[int, Any] = {}
    """Other statuses of success, each with the type of its answer or a tuple of types."""
    line: Any = None
    """The type of one line of an answer that may be NDJSON."""
    codes: tuple[str, ...] = ()
    """The codes of problems that do not follow from the rest of the entry (`openapi_answers.problems` adds those)."""
    example: Any = None
    """A body that works."""
    answer_example: Any = None
    media: tuple[str, ...] = ("application/json",)
    base: str = BASE
    is_page: bool = False
    """Whether its answer is the page, whose script alone reads the parameters of the URL."""
    is_heavy: bool = False
    """Whether its reads may look at many rows. Those of every list do."""

    @property
    def full_path(self) -> str:
        return self.base + self.path

    @property
    def is_heavy_read(self) -> bool:
        return not self.is_write and (self.is_heavy or issubclass(self.query, Page))

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD")


DECLARED: list[Route] = []
"""The routes of the modules that have been imported; `api/routes.py` imports all of them."""


def route(method_and_path: str, needs: Scope | Access, **members: Any) -> Callable[[H], H]:
    """Adds the handler below it to `DECLARED`, as the route that `make_route` returns."""

    def declare(handler: H) -> H:
        DECLARED.append(make_route(handler, method_and_path, needs, **members))
        return handler

    return declare


def make_route(handler: Handler, method_and_path: str, needs: Scope | Access, **members: Any) -> Route:
    """The types of the query and of the body are the handler's annotations, a body `| None` is optional, and the first
    paragraph of the docstring is the summary. `members` are other members of `Route`, and the `body` where the
    annotation cannot say it."""
    method, path = method_and_path.split(" ")
    _, query, *bodies = inspect.signature(handler, eval_str=True).parameters.values()
    if bodies:
        kinds = get_args(bodies[0].annotation)
        is_optional = NoneType in kinds
        [body] = [kind for kind in kinds if kind is not NoneType] if is_optional else [bodies[0].annotation]
        members = {"body": body, "is_body_optional": is_optional, **members}
    summary = " ".join((inspect.getdoc(handler) or "").partition("\n\n")[0].split())
    assert summary, f"{method_and_path}: the docstring of its handler is missing"
    return Route(
        method=method, path=path, needs=needs, handler=handler, summary=summary, query=query.annotation, **members
    )


class Table:
    """Finds the route of a request. At each place of a path stands either fixed words or one parameter."""

    def __init__(self, routes: list[Route], unknown: Route) -> None:
        self.routes, self.unknown = routes, unknown
        """`unknown` answers a browser at an address outside the API that has no route."""
        self._root = _Node()
        for route in routes:
            self._root.add(route.full_path.split("/")[1:], route)
        plain = {route.full_path for route in routes if "{" not in route.full_path}
        self._plain = {path: found[0] for path in plain if (found := self._walk(path))}

    def find(self, path: str) -> tuple[Mapping[str, Route], dict[str, str]] | None:
        """The routes of this path by method, and the parameters in it."""
        plain = self._plain.get(path)
        return (plain, {}) if plain is not None else self._walk(path)

    def _walk(self, path: str) -> tuple[Mapping[str, Route], dict[str, str]] | None:
        node, parameters = self._root, dict[str, str]()
        for part in path.split("/")[1:]:
            if part in node.fixed:
                node = node.fixed[part]
            elif node.any is not None and SEGMENT.fullmatch(part):
                parameters[node.parameter] = part
                node = node.any
            else:
                return None
        return (node.routes, parameters) if node.routes else None


class _Node:
    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.parameter = ""
        self.routes: dict[str, Route] = {}

    def add(self, parts: list[str], route: Route) -> None:
        if not parts:
            assert route.method not in self.routes, f"{route.method} {route.full_path} is in the table twice"
            self.routes[route.method] = route
            return
        head, rest = parts[0], parts[1:]
        if head.startswith("{"):
            assert not self.fixed, f"{route.full_path}: fixed words and a parameter stand in the same place"
            assert self.parameter in ("", head[1:-1]), f"{route.full_path}: two names for one parameter"
            self.any, self.parameter = self.any or _Node(), head[1:-1]
            self.any.add(rest, route)
        else:
            assert self.any is None, f"{route.full_path}: fixed words and a parameter stand in the same place"
            self.fixed.setdefault(head, _Node()).add(rest, route)
