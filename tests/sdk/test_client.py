"""The SDK speaks through one client port: a client without a database can stand in for the store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from rota import App, NotFinished, Schedule
from rota.clock import SystemClock
from rota.config import Settings
from rota.domain.errors import DefinitionError, UnknownSchedule
from rota.domain.status import Status
from rota.ids import IdSource
from rota.ops.submission import Accepted, Header, Item
from rota.sdk import registry
from rota.sdk.app import registry_of
from rota.sdk.client import Client, Parent
from rota.sdk.connection import Connection
from rota.sdk.store_client import StoreClient
from rota.store.reader import Ending


class Remote:
    """Answers from memory, and keeps what it was asked."""

    def __init__(self, connection: Connection, app: str) -> None:
        self.settings: Settings = connection.settings
        self.ids = IdSource(SystemClock())
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.endings: dict[str, Ending] = {}

    def enqueue(self, header: Header, items: list[Item], parent: Parent | None = None) -> list[Accepted]:
        for item in items:
            self.endings[item.id] = Ending(Status.SUCCESS, "completed", item.arguments, None, header.app, header.job, 1)
        return [Accepted(item.id, True) for item in items]

    async def aenqueue(self, header: Header, items: list[Item], parent: Parent | None = None) -> list[Accepted]:
        return self.enqueue(header, items, parent)

    def wait(self, id: str, timeout_s: float | None) -> Ending | None:
        return self.endings.get(id)

    async def await_end(self, id: str, timeout_s: float | None) -> Ending | None:
        return self.endings.get(id)

    def status(self, id: str) -> Status:
        return Status.QUEUED

    def replay(self, ids: Sequence[str]) -> list[str]:
        return self.ids.many(len(ids))

    def schedule(self, name: str) -> Schedule:
        raise UnknownSchedule(f"there is no schedule {name!r}")

    def database(self) -> Connection:
        raise DefinitionError("within= needs a database")

    def __getattr__(self, verb: str) -> Any:
        def ask(*values: Any, **_: Any) -> bool:
            self.asked.append((verb, values))
            return True

        return ask


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """Its database does not exist: opening it would fail."""
    monkeypatch.setattr(registry, "StoreClient", Remote)
    found = App("remote", url="sqlite:////nonexistent/folder/rota.db")
    yield found
    found.close()


def test_jobs_and_handles_work_without_a_database(app: App) -> None:
    @app.job
    def add(a: int, b: int) -> dict[str, int]:
        return {"a": a, "b": b}

    assert add.enqueue(1, b=2).result() == {"a": 1, "b": 2}
    assert [handle.result() for handle in add.enqueue_many([(1, 2), {"a": 3, "b": 4}])] == [
        {"a": 1, "b": 2},
        {"a": 3, "b": 4},
    ]

    async def both() -> dict[str, int]:
        handle = await add.aenqueue(5, 6)
        return await handle.aresult()

    assert asyncio.run(both()) == {"a": 5, "b": 6}
    with pytest.raises(NotFinished, match="is queued after 3 s"):
        app.handle("0197a3c2-0000-7000-8000-000000000000").result(3)


def test_dead_letters_and_schedules_work_without_a_database(app: App) -> None:
    @app.job
    def send() -> None: ...

    ids = IdSource(SystemClock()).many(3)
    assert len(list(app.dead.replay(ids))) == 3
    nightly = app.schedule(send, cron="0 0 * * *")
    assert nightly.pause("disk is full")
    assert nightly.resume()
    assert app.unschedule("send")
    app.calendar("holidays", ["2026-12-24"])
    client = registry_of(app).client
    assert isinstance(client, Remote)
    verbs = [verb for verb, _ in client.asked]
    assert verbs == ["put_schedule", "pause_schedule", "resume_schedule", "remove_schedule", "set_calendar"]
    with pytest.raises(UnknownSchedule, match="'send'"):
        nightly.info()


def test_only_a_database_has_the_transaction_of_a_caller(app: App) -> None:
    @app.job
    def send() -> None: ...

    with pytest.raises(DefinitionError, match="needs a database"):
        send.within(object()).enqueue()


def test_the_client_over_the_store_has_every_verb() -> None:
    client: Client = StoreClient(registry_of(App("verbs", url="sqlite://:memory:")).connection, "verbs")
    verbs = [name for name in vars(Client) if not name.startswith("_")]
    assert all(hasattr(client, verb) for verb in verbs)
