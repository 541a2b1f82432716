"""Definitions as data: register an app's jobs and queues, change a queue.

A version is keyed by its content. Registering content that the database already has adds nothing and moves nothing, so
that old and new nodes of a rolling deploy do not push each other's version back and forth.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain import requirement
from rota.domain.errors import DefinitionError
from rota.domain.job import Definition, Queue, content, digest
from rota.ops.audit import audit
from rota.store.hints import FIRST_RANK, Ready
from rota.store.port import Tx


def register(tx: Tx, namespace: str, app: str, definitions: Sequence[Definition], queues: Sequence[Queue]) -> None:
    """Makes the jobs and queues of an app known. Does not write what is already so."""
    tx.run("add_namespace", namespace=namespace)
    names = sorted({definition.queue for definition in definitions} | {queue.name for queue in queues})
    tx.run("add_queues", namespace=namespace, queues=[(name,) for name in names])
    needed = {definition.name: requirement.written(definition.needs) for definition in definitions}
    lanes = {(name, "") for name in names} | {(definition.queue, needed[definition.name]) for definition in definitions}
    tx.run("add_lanes", namespace=namespace, app=app, lanes=sorted(lanes))
    for queue in queues:
        tx.run(
            "set_queue",
            namespace=namespace,
            queue=queue.name,
            policy=queue.policy.value,
            max_depth=queue.max_depth,
        )
    texts = [(definition.name, content(definition)) for definition in definitions]
    versions = [(name, digest(text), text) for name, text in texts]
    pauses = {definition.name: definition.pause_after for definition in definitions}
    for version, job in tx.rows("add_versions", namespace=namespace, app=app, versions=versions):
        about = {"requirements": needed[job], "pause_after": pauses[job]}
        tx.run("point_job", namespace=namespace, app=app, job=job, version=version, **about)


def pause_queue(tx: Tx, namespace: str, queue: str, actor: str, note: str) -> bool:
    """Stops claims from a queue; what runs goes on. Returns whether that changed anything."""
    _must_exist(tx, namespace, queue)
    changed = tx.run("pause_queue", namespace=namespace, queue=queue, actor=actor, note=note) > 0
    if changed:
        audit(tx, actor, "queue.pause", queue, after={"note": note})
    return changed


def resume_queue(tx: Tx, namespace: str, queue: str, actor: str) -> bool:
    _must_exist(tx, namespace, queue)
    changed = tx.run("resume_queue", namespace=namespace, queue=queue) > 0
    if changed:
        audit(tx, actor, "queue.resume", queue)
        lanes = tx.rows("lanes_of_queue", namespace=namespace, queue=queue)
        tx.tell(Ready.of((lane, FIRST_RANK) for (lane,) in lanes))
    return changed


def _must_exist(tx: Tx, namespace: str, queue: str) -> None:
    if tx.one("queue_exists", namespace=namespace, queue=queue) is None:
        raise DefinitionError(f"there is no queue {queue!r}; `rota queues` lists them")
