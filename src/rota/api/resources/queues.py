"""Queues: how full they are, their settings, and their pauses."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from rota.api import listing, named, problem, revision
from rota.api.answer import Answer, created, shown
from rota.api.call import Call
from rota.api.dry_run import Dry, would
from rota.api.named import NamedPage, Note
from rota.api.patch import patch_of, patched
from rota.api.revision import Conditions
from rota.api.route import NoQuery, route
from rota.domain import payload
from rota.domain.access import Scope
from rota.domain.actor import Actor
from rota.domain.job import Queue as Settings
from rota.domain.rank import Policy
from rota.ops import define as ops
from rota.store.port import Tx, View
from rota.views import queue as views
from rota.views.queue import Queue, QueueChanged, QueueDetail


class QueueBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The settings of a queue. Without `maxDepth` it takes any number of executions."""

    policy: Policy | None = None
    max_depth: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None


QueuePatch = patch_of(QueueBody, "QueuePatch")


@route("GET /queues", Scope.READ, answer=listing.of(Queue))
async def list_queues(call: Call, query: NamedPage) -> Answer:
    """Queues in the order of their names, and how full they are."""
    found = await call.read(views.queues, call.namespace)
    return listing.of_all(call, query, Queue, sorted(found, key=lambda one: one.name), lambda one: [one.name])


@route("GET /queues/{queue}", Scope.READ, answer=QueueDetail)
async def get(call: Call, query: NoQuery) -> Answer:
    """One queue, its settings, and how full it is."""

    def read(view: View) -> Answer:
        known = _known(view, call)
        return revision.not_modified(call.headers, known.revision) or _answer(known)

    return await call.read(read)


@route(
    "PUT /queues/{queue}",
    Scope.DEFINE,
    answer=QueueDetail,
    codes=("precondition_failed",),
    example={"policy": "fifo", "maxDepth": 100000},
)
async def put(call: Call, query: Dry, body: QueueBody) -> Answer:
    """Makes a queue, or replaces its settings. A deploy of code that declares it changes them again."""
    name = named.new_name(call.path["queue"], "a queue's name")

    def act(tx: Tx) -> bool:
        return revision.add_or_change(
            revision.conditions(call.headers),
            lock=lambda: ops.lock_queue(tx, call.namespace, name),
            add=lambda: ops.add_queue(tx, call.namespace, _settings(name, body), call.actor),
            change=lambda: ops.put_queue(tx, call.namespace, _settings(name, body), call.actor),
        )

    return await call.act(lambda tx, is_new: _shown(call, tx, is_new=is_new), act)


@route(
    "PATCH /queues/{queue}",
    Scope.DEFINE,
    body=QueuePatch,
    answer=QueueDetail,
    codes=("precondition_failed",),
    example={"maxDepth": 1000},
)
async def change(call: Call, query: Dry, body: Any) -> Answer:
    """Replaces the named settings of a queue; null puts the default back."""
    where, conditions = (call.namespace, call.path["queue"]), revision.conditions(call.headers)
    return await call.act(lambda tx, done: _shown(call, tx), _change, *where, conditions, body, call.actor)


@route("POST /queues/{queue}/pause", Scope.OPERATE, answer=QueueChanged, example={"note": "the provider is down"})
async def pause(call: Call, query: Dry, body: Note | None) -> Answer:
    """Lets no worker claim from the queue until it is resumed; running executions continue."""
    note = payload.clean((body.note if body else None) or "", payload.MOST_NOTE)

    def act(tx: Tx) -> bool:
        _known(tx, call)
        return ops.pause_queue(tx, call.namespace, call.path["queue"], call.actor, note)

    return await call.act(lambda tx, is_changed: _changed(call, tx, is_changed), act)


@route("POST /queues/{queue}/resume", Scope.OPERATE, answer=QueueChanged)
async def resume(call: Call, query: Dry) -> Answer:
    """Lets workers claim from the queue again."""

    def act(tx: Tx) -> bool:
        _known(tx, call)
        return ops.resume_queue(tx, call.namespace, call.path["queue"], call.actor)

    return await call.act(lambda tx, is_changed: _changed(call, tx, is_changed), act)


def _change(tx: Tx, namespace: str, name: str, conditions: Conditions, patch: msgspec.Struct, actor: Actor) -> None:
    before = tx.one("lock_queue", namespace=namespace, queue=name)
    if before is None:
        raise problem.not_found()
    number, policy, most = before
    conditions.check(number)
    wanted = patched(QueueBody(policy=Policy(policy), max_depth=most), patch)
    ops.put_queue(tx, namespace, _settings(name, wanted), actor)


def _settings(name: str, body: QueueBody) -> Settings:
    return Settings(name=name, policy=body.policy or Policy.PRIORITY, max_depth=body.max_depth)


def _known(view: View, call: Call) -> views.Known:
    found = views.queue(view, call.namespace, call.path["queue"])
    if found is None:
        raise problem.not_found()
    return found


def _answer(known: views.Known) -> Answer:
    return shown(known.queue, headers=revision.header(known.revision))


def _shown(call: Call, tx: Tx, *, is_new: bool = False) -> Answer:
    known = _known(tx, call)
    if call.is_dry_run:
        return would(known.queue)
    if is_new:
        return created(known.queue, f"/api/v1/queues/{known.queue.name}", headers=revision.header(known.revision))
    return _answer(known)


def _changed(call: Call, tx: Tx, is_changed: bool) -> Answer:
    known = _known(tx, call)
    value = views.changed(known.queue, is_changed=is_changed)
    return would(value) if call.is_dry_run else shown(value, headers=revision.header(known.revision))
