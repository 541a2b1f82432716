"""Definitions as data: register an app's jobs and queues, change a queue.

A version is keyed by its content: registering content that the database already has adds nothing. Once a worker of the
app has joined, only its deploys move a job to another version or change a queue (`ops/deploy.py`): a process that
enqueues may have only a part of the code, or an older one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota import ids
from rota.domain import requirement
from rota.domain.errors import DefinitionError
from rota.domain.job import Definition, Queue, content, decode, digest
from rota.ops.audit import audit
from rota.ops.quotas import check_quota
from rota.store.definition_reader import JobRow
from rota.store.hints import FIRST_RANK, Ready
from rota.store.port import Tx


def register(tx: Tx, namespace: str, app: str, definitions: Sequence[Definition], queues: Sequence[Queue]) -> None:
    """Adds the jobs and queues of a process that only enqueues. Before the first deploy the newest version wins."""
    new = add(tx, namespace, app, definitions, queues)
    if lock(tx, namespace, app) is None:
        point(tx, namespace, app, new)
        set_queues(tx, namespace, queues)


def apply(tx: Tx, namespace: str, app: str, definition: Definition, actor: str) -> int:
    """Adds a definition that is not code, puts it in force, and returns its version."""
    add(tx, namespace, app, [definition], [])
    version = digest(content(definition))
    point(tx, namespace, app, {definition.name: version})
    tx.run("set_origin", namespace=namespace, app=app, job=definition.name, origin="file")
    (row,) = tx.records("job_called", JobRow, namespace=namespace, name=definition.name, app=app)
    number = row.version - row.base
    audit(tx, namespace, actor, "workflow.apply", f"{app}.{definition.name}", after={"version": number})
    return number


def add(
    tx: Tx,
    namespace: str,
    app: str,
    definitions: Sequence[Definition],
    queues: Sequence[Queue],
    runs: str | None = None,
) -> dict[str, str]:
    """Adds the jobs, versions, queues and lanes that the database does not have, and changes nothing that it has.

    `runs` is the column of the lanes: None for jobs of code. Returns the jobs that have a new version, with its digest.
    """
    tx.run("add_namespace", namespace=namespace)
    lock(tx, namespace, app)
    refuse_taken(tx, namespace, app, [definition.name for definition in definitions])
    named = {definition.queue: Queue(name=definition.queue) for definition in definitions}
    known = named | {queue.name: queue for queue in queues}
    rows = [(queue.name, queue.policy.value, queue.max_depth) for _, queue in sorted(known.items())]
    tx.run("add_declared_queues", namespace=namespace, queues=rows)
    needed = {definition.name: requirement.written(definition.needs) for definition in definitions}
    lanes = sorted((definition.name, definition.queue, needed[definition.name]) for definition in definitions)
    tx.run("add_lanes", namespace=namespace, app=app, lanes=[(*lane, runs) for lane in lanes])
    texts = {definition.name: content(definition) for definition in definitions}
    versions = {job: digest(text) for job, text in sorted(texts.items())}
    new = tx.rows(
        "add_versions", namespace=namespace, app=app, versions=[(*one, texts[one[0]]) for one in versions.items()]
    )
    if new:
        found = _versions(tx, namespace, app, versions)
        added = tx.changed("add_jobs", namespace=namespace, app=app, jobs=_pointers(tx, namespace, app, found))
        if added:
            check_quota(tx, namespace, "max_jobs", 0, added=added)
    return {job: versions[job] for (job,) in new}


def refuse_taken(tx: Tx, namespace: str, app: str, names: Sequence[str]) -> None:
    """Refuses code that declares a job of a name that the API has defined: neither may overwrite the other."""
    for (name,) in tx.rows("jobs_of_api", namespace=namespace, app=app, names=list(names)):
        raise DefinitionError(
            f"app {app!r} has a job {name!r} that was defined with the HTTP API: delete it there, or give the job of "
            "the code another name"
        )


def lock(tx: Tx, namespace: str, app: str) -> int | None:
    """Locks the app's row, which comes before all other locks on its definitions. Returns the deploy in force."""
    who = {"namespace": namespace, "app": app}
    found = tx.one("lock_app", **who)
    if found is None:
        tx.run("add_app", **who)
        found = tx.one("lock_app", **who)
    assert found is not None, "the row was added in this transaction or before it"
    return None if found[0] is None else int(found[0])


def point(tx: Tx, namespace: str, app: str, versions: Mapping[str, str]) -> list[Definition]:
    """Moves jobs to the versions with these digests. Returns their definitions."""
    found = _versions(tx, namespace, app, versions)
    if found:
        tx.run("point_jobs", namespace=namespace, app=app, jobs=_pointers(tx, namespace, app, found))
    return [definition for _, definition in found]


def set_queues(tx: Tx, namespace: str, queues: Sequence[Queue]) -> None:
    for queue in sorted(queues, key=lambda queue: queue.name):
        policy, most = queue.policy.value, queue.max_depth
        tx.run("set_queue", namespace=namespace, queue=queue.name, policy=policy, max_depth=most)


def _versions(tx: Tx, namespace: str, app: str, versions: Mapping[str, str]) -> list[tuple[int, Definition]]:
    """The numbers and definitions of the versions with these digests, sorted by job."""
    if not versions:
        return []
    rows = tx.rows("versions", namespace=namespace, app=app, versions=list(versions.items()))
    return [(number, decode(text)) for _, number, text in rows]


def _pointers(
    tx: Tx, namespace: str, app: str, versions: Sequence[tuple[int, Definition]]
) -> list[tuple[str, str, int, str, int | None, int]]:
    """The `job` rows for these versions. They repeat the parts of a definition that an enqueue needs.

    The ids are used for jobs that the database does not have.
    """
    names = [about.name for _, about in versions]
    base: dict[str, int] = dict(tx.rows("deleted_versions", namespace=namespace, app=app, names=names))
    rows = []
    for number, about in versions:
        id = ids.named(tx.now, f"{namespace} {app} {about.name}")
        needed = requirement.written(about.needs)
        rows.append((id, about.name, number, needed, about.pause_after, base.get(about.name, 0)))
    return rows


def lock_queue(tx: Tx, namespace: str, name: str) -> int | None:
    """Locks a queue and returns its revision; None if there is none."""
    row = tx.one("lock_queue", namespace=namespace, queue=name)
    return None if row is None else int(row[0])


def add_queue(tx: Tx, namespace: str, queue: Queue, actor: str) -> bool:
    """Makes a queue; False if there is one of this name."""
    tx.run("add_namespace", namespace=namespace)
    rows = [(queue.name, queue.policy.value, queue.max_depth)]
    if not tx.changed("add_declared_queues", namespace=namespace, queues=rows):
        return False
    audit(tx, namespace, actor, "queue.put", queue.name, after=_settings(queue.policy.value, queue.max_depth))
    return True


def put_queue(tx: Tx, namespace: str, queue: Queue, actor: str) -> bool:
    """Makes a queue or changes its settings; returns whether that changed anything.

    A later deploy of code that declares the queue changes it again.
    """
    tx.run("add_namespace", namespace=namespace)
    where = {"namespace": namespace, "queue": queue.name}
    before = tx.one("lock_queue", **where)
    if not tx.changed("set_queue", policy=queue.policy.value, max_depth=queue.max_depth, **where):
        return False
    was = None if before is None else _settings(before[1], before[2])
    now = _settings(queue.policy.value, queue.max_depth)
    audit(tx, namespace, actor, "queue.put", queue.name, before=was, after=now)
    return True


def _settings(policy: str, max_depth: int | None) -> dict[str, object]:
    """The settings of a queue as the API shows them."""
    return {"policy": policy, "maxDepth": max_depth}


def pause_queue(tx: Tx, namespace: str, queue: str, actor: str, note: str) -> bool:
    """Stops claims from a queue; running executions continue. Returns whether that changed anything."""
    _must_exist(tx, namespace, queue)
    changed = tx.changed("pause_queue", namespace=namespace, queue=queue, actor=actor, note=note) > 0
    if changed:
        audit(tx, namespace, actor, "queue.pause", queue, after={"note": note})
    return changed


def resume_queue(tx: Tx, namespace: str, queue: str, actor: str) -> bool:
    _must_exist(tx, namespace, queue)
    changed = tx.changed("resume_queue", namespace=namespace, queue=queue) > 0
    if changed:
        audit(tx, namespace, actor, "queue.resume", queue)
        lanes = tx.rows("lanes_in_queue", namespace=namespace, queue=queue)
        tx.tell(Ready.of((lane, FIRST_RANK) for (lane,) in lanes))
    return changed


def _must_exist(tx: Tx, namespace: str, queue: str) -> None:
    if tx.one("queue_exists", namespace=namespace, queue=queue) is None:
        raise DefinitionError(f"there is no queue {queue!r}; `rota queues` lists them")
