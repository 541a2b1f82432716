"""A stage with events: jobs that subscribe, steps that wait, and the upkeep of both."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain import payload
from rota.domain.job import Definition
from rota.domain.subscription import Subscribes
from rota.ops import deploy
from rota.ops.events import replay
from rota.ops.events.chores import work_on_events
from rota.ops.events.emit import Emission, EmitHeader, emit
from rota.ops.submission import Accepted
from rota.store.port import Tx
from rota.views import event as views
from tests.support.tables import table
from tests.support.world import APP, NAMESPACE
from tests.workflow.stage import Stage

HEADER = EmitHeader(NAMESPACE, "test")
ONE = {"x": {"type": "any", "required": True}}


def subscriber(name: str, *names: str, **about: Any) -> Definition:
    """A job with one parameter that these events start."""
    on = {key: about.pop(key) for key in ("where", "debounce_s") if key in about}
    return Definition(name=name, on=Subscribes(sorted(names), **on), **{"parameters": ONE, **about})


class Scene(Stage):
    """Emits events, and looks at what they started."""

    def deploy(self, *definitions: Definition, app: str = APP) -> None:
        """These are all jobs of the app from now on."""
        number = self.store.transact(deploy.declare, NAMESPACE, app, definitions, [], {}, takes_precedence=True)
        self.world.join(deploy=number, app=app, name=f"of deploy {number}", lease_s=1e9)

    def emission(self, name: str, value: Any = None, subject: str = "", key: str | None = None) -> Emission:
        text = msgspec.json.encode(value).decode()
        return Emission(self.world.ids.new(), name, text, subject, key, payload.digest(text) if key else "")

    def emit(self, name: str, value: Any = None, subject: str = "", key: str | None = None) -> str:
        return self.accept(self.emission(name, value, subject, key))[0].id

    def accept(self, *emissions: Emission, delivers_later: bool = False) -> list[Accepted]:
        header = msgspec.structs.replace(HEADER, delivers_later=delivers_later)
        return self.store.transact(emit, header, list(emissions))

    def chores(self) -> bool:
        return super().chores() or bool(self.store.transact(work_on_events))

    def settle(self) -> None:
        """All upkeep of events that there is to do now."""
        while self.store.transact(work_on_events):
            pass

    def replay(self, id: str) -> int:
        return self.store.transact(replay.replay, NAMESPACE, id, "test")

    def event(self, id: str) -> views.EventDetail:
        return self.store.read(views.event, NAMESPACE, id)

    def started_by(self, id: str) -> list[str | None]:
        """The names of the jobs that an event has started, sorted."""
        return sorted((one.job for one in self.event(id).started), key=str)

    def arguments(self, job: str) -> list[Any]:
        return [msgspec.json.decode(row["arguments"]) for row in self.executions(job)]

    def check(self, *, is_pruned: bool = False) -> None:
        super().check(is_pruned=is_pruned)
        left = [row for row in table(self.store, "subscription") if row["execution"] is not None]
        assert not left, f"steps that have ended still subscribe: {left[:2]}"
        assert table(self.store, "event_open") == []


def emit_one(tx: Tx, emission: Emission) -> list[Accepted]:
    return emit(tx, HEADER, [emission])
