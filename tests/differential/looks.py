"""Every function of the reader, asked in the same way of both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rota.domain.served import Served
from rota.ids import LAST_ID, is_id
from rota.ops import upkeep
from rota.store import claim_reader, definition_reader, event_reader, reader
from rota.store.event_reader import EventFilter
from rota.store.reader import Filter
from rota.views import error_group as error_views
from rota.views import execution as execution_views
from rota.views import finding as finding_views
from rota.views import lookup
from tests.differential.side import Side
from tests.support.statistics import counted

NAMESPACE = "default"
APPS = ("shop", "post")
LEASE_S = 10.0


class Asked(msgspec.Struct, frozen=True):
    """What a look may be about."""

    id: str
    place: int
    ids: list[str]
    wanted: Filter
    reason: str | None


def _read(query: Callable[..., Any], *fields: Callable[[Side, Asked], Any]) -> Callable[[Side, Asked], Any]:
    return lambda side, asked: side.store.read(query, *(field(side, asked) for field in fields))


def _namespace(_: Side, asked: Asked) -> str:
    return NAMESPACE


def _id(_: Side, asked: Asked) -> str:
    return asked.id


def _known_id(_: Side, asked: Asked) -> str:
    """For a reader that is only asked about a row that exists."""
    return asked.id if is_id(asked.id) else LAST_ID


def _ids(_: Side, asked: Asked) -> list[str]:
    return asked.ids


def _worker(side: Side, asked: Asked) -> int:
    return side.worker(asked.place)


def _app(_: Side, asked: Asked) -> str:
    return APPS[asked.place % 2]


def _served(_: Side, asked: Asked) -> Served:
    queues = (asked.place % 3 and ["default"]) or None
    return Served.one(NAMESPACE, APPS[asked.place % 2], queues, [["send", "count"], ["send"], []][asked.place % 3])


def _sorted(look: Callable[[Side, Asked], Any]) -> Callable[[Side, Asked], Any]:
    """For answers without an order of their own."""
    return lambda side, asked: sorted(look(side, asked))


LOOKS: list[tuple[str, Callable[[Side, Asked], Any]]] = [
    ("execution", _read(reader.execution, _namespace, _id)),
    ("attempts", _read(reader.attempts, _namespace, _id)),
    ("ending", _read(reader.ending, _namespace, _id)),
    ("status", _read(reader.status, _namespace, _id)),
    ("claim facts", _read(claim_reader.claim_facts, _namespace, _id)),
    ("id by its start", _read(lookup.execution_id, _namespace, lambda _, asked: asked.id[: 4 + len(asked.ids) * 2])),
    ("id by its end", _read(lookup.execution_id, _namespace, lambda _, asked: asked.id[-6 - len(asked.ids) :])),
    ("executions", _read(execution_views.rows, _namespace, lambda _, asked: asked.wanted)),
    ("dead", _read(reader.dead, _namespace, lambda _, asked: asked.wanted, lambda _, asked: asked.reason)),
    ("dead count", _read(reader.dead_count, _namespace)),
    ("are dead", _read(reader.are_dead, _namespace, lambda _, asked: [one for one in asked.ids if len(one) == 36])),
    (
        "has ready",
        _read(reader.has_ready, _served),
    ),
    ("cancels", _sorted(_read(reader.cancels, _worker))),
    ("holds more", _read(reader.holds_more, _worker, lambda _, asked: [one for one in asked.ids if len(one) == 36])),
    ("queues", _read(reader.queues, _namespace)),
    ("workers", _read(reader.workers, _namespace, lambda side, _: side.clock.now() - 30_000_000)),
    ("jobs", _read(definition_reader.all_jobs, _namespace)),
    ("apps of job", _read(reader.apps_of_job, _namespace, lambda _, asked: "send")),
    ("definition", _read(reader.definition, _namespace, _app, lambda _, asked: "count")),
    ("findings", _read(finding_views.findings, _namespace)),
    ("errors", _read(error_views.groups, _namespace, lambda *_: error_views.Wanted(), lambda *_: 50)),
    ("events", _read(event_reader.events, _namespace, lambda _, asked: EventFilter(limit=asked.wanted.limit))),
    ("event", _read(event_reader.event, _namespace, _id)),
    ("deliveries", _read(event_reader.deliveries, _known_id, lambda *_: 100)),
    ("subscriptions", _read(event_reader.subscriptions, _namespace, lambda *_: None, lambda *_: 100)),
    ("statistics", lambda side, _: sorted(counted(side.store).items())),
    ("clock", _read(reader.clock)),
    ("look", _read(upkeep.look, lambda *_: LEASE_S)),
]
