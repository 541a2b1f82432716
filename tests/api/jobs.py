"""Jobs of an app, put into the database of a server as if its code had been started once."""

from __future__ import annotations

from rota.domain.job import Definition, Queue
from rota.ops import define
from rota.store.port import Store

ANY = {"others": {"type": "any", "required": False, "others": True}}
"""The parameters of a job that takes every argument."""


def add_jobs(
    store: Store, *jobs: Definition, queues: tuple[Queue, ...] = (), app: str = "shop", namespace: str = "default"
) -> None:
    store.transact(define.register, namespace, app, list(jobs), list(queues))


SEND = Definition(
    name="send", parameters={"to": {"type": "str", "required": True}, "count": {"type": "int", "required": False}}
)
FREE = Definition(name="free", parameters=ANY)
