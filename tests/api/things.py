"""One thing of each kind behind the API, under the names that the examples of the routes use."""

from __future__ import annotations

from typing import Any

import httpx

from rota.domain.requirement import Needs
from tests.api.defining import job, worker
from tests.api.server import Server
from tests.support.tables import table
from tests.support.world import World
from tests.workflow.stage import Stage, one_success

JOBS = ("report", "send", "charge")
PARAMETERS = {name: {"type": "any", "required": False} for name in ("month", "to", "day", "rows")}
ASK = {"id": "ask", "approve": {"text": "Release?", "timeout": "1d"}}
WORKFLOW = {
    "rota": "workflow/1",
    "name": "import",
    "parameters": {"day": {"type": "string", "default": "2030-01-01"}},
    "steps": [{"id": "load", "job": "load", "with": {"day": {"$": "input.day"}}}],
    "result": {"$": "load"},
}


def stage_of(server: Server) -> Stage:
    """A worker by hand for the jobs and workflows of the app `shop`."""
    stage = Stage(World(server.store))
    stage.workflow("release", ASK)
    for name in JOBS:
        stage.bodies[name] = one_success
    return stage


def asked(stage: Stage) -> tuple[str, str]:
    """A run that waits for an approval, and the approval."""
    run = stage.start("release")
    stage.work()
    (approval,) = [str(row["execution"]) for row in table(stage.store, "step") if str(row["run"]) == run]
    return run, approval


async def things(server: Server, client: httpx.AsyncClient, stage: Stage) -> dict[str, str]:
    """An id or a name for each parameter of a path."""
    for name, app in (*((name, "shop") for name in JOBS), ("extract", "default"), ("load", "default")):
        job(server, name, app, parameters=PARAMETERS, needs=Needs(breakers=["pay"]))
    run, approval = asked(stage)

    async def made(path: str, body: Any, member: str) -> str:
        answer = await client.post(path, json=body)
        assert answer.is_success, answer.text
        return str(answer.json()[member])

    async def put(path: str, body: Any) -> None:
        answer = await client.put(path, json=body)
        assert answer.is_success, answer.text

    await put("/calendars/holidays", {"days": ["2026-12-24"]})
    await put("/queues/mail", {"maxDepth": 100_000})
    await put("/namespaces/spare", {})
    await made("/jobs", {"name": "nightly", "command": "true"}, "jobId")
    execution = await made("/executions", {"job": "send", "delay": "1h"}, "executionId")
    hook = (await client.post("/hooks", json={"name": "pushes", "event": "push", "scheme": "bearer"})).json()
    return {
        "action": await made(
            "/actions", {"action": "cancel", "on": "executions", "filter": {"job": "charge"}, "atMost": 9}, "actionId"
        ),
        "approval": approval,
        "breaker": "pay",
        "calendar": "holidays",
        "event": await made("/events", {"name": "order.made"}, "eventId"),
        "execution": execution,
        "fingerprint": "0123456789abcdef",
        "hook": "pushes",
        "job": "nightly",
        "key": hook["path"].rpartition("/")[2],
        "namespace": "spare",
        "queue": "mail",
        "run": run,
        "schedule": await made("/schedules", {"job": "report", "name": "hourly", "cron": "0 * * * *"}, "scheduleId"),
        "template": await made("/templates", {"name": "copy", "job": {"command": ["true"]}}, "name"),
        "token": await made("/tokens", {"name": "pages", "role": "viewer"}, "tokenId"),
        "version": "1",
        "worker": str(worker(server, "report")),
        "workflow": await made("/workflows", WORKFLOW, "name"),
    }
