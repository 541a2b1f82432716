"""Every example of the document is sent, and accepted."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rota.api.openapi_answers import successes
from rota.api.route import Route
from rota.api.routes import ROUTES
from tests.api.server import BASE, Server
from tests.api.things import PARAMETERS, asked, stage_of, things
from tests.workflow.stage import Fail, Stage

NEW = {"calendar": "closed", "job": "daily-report", "namespace": "new", "queue": "new", "template": "backup"}
NEW["workflow"] = "etl"
"""Names of things that a PUT makes. Where the body of the example has a name, it is this one."""


@pytest.mark.parametrize("kind", ["examples", "empty"])
async def test_every_example_is_accepted(server: Server, kind: str) -> None:
    token = server.token(namespaces=("*",))
    async with server.client(token) as client:
        stage = stage_of(server)
        known = await things(server, client, stage)
        for route in ROUTES:
            if route.example is None or (kind == "empty" and not route.is_body_optional):
                continue
            await prepare(stage, client, route, known)
            place = path(route, {**known, **(NEW if route.method == "PUT" else {})})
            body: Any = route.example if route.path != "/session" else {"token": token}
            sent = {} if kind == "empty" else {"json": body}
            answer = await client.request(route.method, place, **sent)
            client.cookies.clear()  # The sign-in of a browser sets one, which cannot be sent together with a token.
            assert answer.status_code in successes(route), f"{route.method} {place}: {answer.text}"


def path(route: Route, known: dict[str, str]) -> str:
    return BASE.removesuffix("/api/v1") + route.full_path.format(**known)


async def prepare(stage: Stage, client: httpx.AsyncClient, route: Route, known: dict[str, str]) -> None:
    """Some examples need a state that those before them have changed."""
    if route.path.startswith("/approvals/"):
        known["approval"] = asked(stage)[1]
    if route.path == "/executions/{execution}":
        made = await client.post("/executions", json={"job": "send", "delay": "1h"})
        known["execution"] = made.json()["executionId"]
    if route.path == "/executions/{execution}/replay":
        await client.post(f"/executions/{known['execution']}/cancel")
    if route.path.startswith("/runs/"):
        known["run"] = failed(stage) if route.path == "/runs/{run}/retry" else asked(stage)[0]


def failed(stage: Stage) -> str:
    """A run whose step `load` failed."""

    def load(**arguments: Any) -> None:
        raise Fail(arguments)

    stage.job("load", load, parameters=PARAMETERS)
    stage.workflow("loading", {"id": "load", "job": "load", "with": {"day": "2030-01-30"}})
    run = stage.start("loading")
    stage.work()
    return run
