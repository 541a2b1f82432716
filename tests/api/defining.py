"""Definitions that tests put into the database as the code of an app would."""

from __future__ import annotations

from typing import Any

from rota.domain.job import Definition
from rota.domain.schedule import Spec, check
from rota.domain.trigger import Cron
from rota.ops import define, fleet
from rota.ops import schedule as schedules
from tests.api.server import Server

TEXT = {"type": "str", "required": False}


def job(server: Server, name: str = "report", app: str = "shop", namespace: str = "default", **about: Any) -> None:
    """A job of code, with an optional parameter `month`."""
    about.setdefault("parameters", {"month": TEXT})
    server.store.transact(define.register, namespace, app, [Definition(name=name, **about)], [])


def coded_schedule(server: Server, name: str = "coded", job: str = "report", app: str = "shop") -> None:
    """A schedule that code declares."""
    spec = check(Spec(job=job, trigger=Cron("0 3 * * *")))
    server.store.transact(schedules.declare, "default", app, [(name, spec)])


def worker(server: Server, *jobs: str, app: str = "shop", namespace: str = "default", **about: Any) -> int:
    """A live worker; no process is behind it."""
    given: dict[str, Any] = {"queues": None, "host": "h", "pid": 1, "version": "1", "concurrency": 4, "name": "w"}
    newcomer = fleet.Newcomer(namespace=namespace, app=app, jobs=list(jobs), **{**given, **about})
    return server.store.transact(fleet.join, newcomer, 600.0)
