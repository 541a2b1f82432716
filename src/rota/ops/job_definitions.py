"""Jobs that the HTTP API defines: a job, its schedules, its dependencies and its events change in one transaction.

A version has the definition that workers run and its `source`, which is what the caller has written. Both together are
its identity: writing known content again adds no version. All operations lock the app's row first, as deploys do.

Executions name their job and the number of its version. A deleted job leaves `job` for `deleted_job`, with the range of
its version numbers; the versions of a new job of the same name have higher numbers. So each execution belongs to
exactly one job id, and accepted executions still run, from the version that they were accepted with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from rota.domain import dependency, requirement
from rota.domain.blocker import Kind, job_key
from rota.domain.dependency import JobRef
from rota.domain.errors import Conflict, DefinitionError, NameTaken
from rota.domain.job import Definition, content
from rota.domain.schedule import Spec
from rota.ops import blockers, control, define, dependencies, schedule
from rota.ops.audit import audit
from rota.ops.events import subscriptions
from rota.ops.quotas import check_quota
from rota.store import definition_reader as reader
from rota.store.definition_reader import JobRow
from rota.store.dependencies import edges
from rota.store.port import Tx

API = "api"
MOST_CANCELLED = 10_000
"""The most executions that the transaction which deletes a job can cancel."""


class DefinedInCode(Conflict):
    code = "defined_in_code"


class Deleted(Conflict):
    code = "deleted"


class HasDependents(Conflict):
    code = "has_dependents"


class Cycle(DefinitionError):
    code = "cycle"


class JobToStore(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a job that a caller wants to store."""

    app: str
    definition: Definition
    source: str
    runs: str | None
    """What a worker must have to run it, see the column `job.runs`."""
    schedules: list[Spec] = []
    template: str | None = None
    """The name and the version of its template, as JSON."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{content(self.definition)}\n{self.source}\n{self.template or ''}".encode()).hexdigest()


class Written(msgspec.Struct, frozen=True):
    """The job after a write, and whether it was created or changed."""

    row: JobRow
    is_new: bool = False
    is_changed: bool = True


Condition = Callable[[JobRow | None], None]
"""Raises if the job, or its absence, is not what the caller expects. Called with the job locked."""


def anything(_: JobRow | None) -> None:
    """The condition of a caller that expects nothing."""


def create(tx: Tx, namespace: str, wanted: JobToStore, id: str, actor: str) -> Written:
    define.lock(tx, namespace, wanted.app)
    known = _named(tx, namespace, wanted.app, wanted.definition.name)
    if known is not None:
        raise NameTaken(f"app {wanted.app} has a job {known.name}: change it, or choose another name", known.id)
    return Written(_write(tx, namespace, wanted, None, id, actor), is_new=True)


def put(tx: Tx, namespace: str, wanted: JobToStore, id: str, actor: str, condition: Condition = anything) -> Written:
    """Creates or replaces the job of that name. The same content changes nothing."""
    define.lock(tx, namespace, wanted.app)
    known = _named(tx, namespace, wanted.app, wanted.definition.name)
    condition(known)
    if known is None:
        return Written(_write(tx, namespace, wanted, None, id, actor), is_new=True)
    return _replaced(tx, namespace, known, wanted, actor)


def change(
    tx: Tx,
    namespace: str,
    row: JobRow,
    build: Callable[[JobRow], JobToStore],
    actor: str,
    condition: Condition = anything,
) -> Written:
    """Locks the app, reads the job again, and replaces its definition by what `build` returns for that row."""
    define.lock(tx, namespace, row.app)
    known = _current(tx, namespace, row)
    condition(known)
    return _replaced(tx, namespace, known, build(known), actor)


def delete(
    tx: Tx, namespace: str, row: JobRow, actor: str, condition: Condition = anything, *, cancels: bool = False
) -> int:
    """Ends the schedules of a job and frees its name. Returns how many of its executions were cancelled."""
    define.lock(tx, namespace, row.app)
    known = _current(tx, namespace, row)
    condition(known)
    _refuse_code(known)
    where = {"namespace": namespace, "app": row.app, "job": row.name}
    if found := tx.rows("dependents_of", **where, most=5):
        named = ", ".join(dependency.label(JobRef(*one), row.app) for one in found)
        raise HasDependents(f"these jobs depend on {row.name}: {named}; change or delete them first")
    names = [name for name, _ in tx.rows("schedules_of_job", **where)]
    for name in names:
        schedule.remove(tx, namespace, row.app, name, actor)
    dependencies.put(tx, (namespace, row.app, row.name), None)
    subscriptions.put(tx, namespace, row.app, row.name, None)
    cancelled = _cancel_pending(tx, namespace, row, actor) if cancels else 0
    tx.run("bury_job", **where, actor=actor)
    # After the row of the job is gone: deleting it waits for claims that put executions behind the pause, and the pause
    # may be newer than `known`. Executions that wait for a pause of a job that is gone would never be released.
    blockers.lift(tx, Kind.JOB_PAUSED, job_key(namespace, row.app, row.name))
    tx.run("bury_versions", **where, id=known.id, base=known.base)
    audit(tx, namespace, actor, "job.delete", f"{row.app}.{row.name}", before=_shown(known.source))
    return cancelled


def _named(tx: Tx, namespace: str, app: str, name: str) -> JobRow | None:
    return reader.find(tx, namespace, name, app)


def _current(tx: Tx, namespace: str, row: JobRow) -> JobRow:
    found = reader.with_id(tx, namespace, row.id)
    if found is None or found.deleted_at is not None:
        raise Deleted(f"the job {row.name} ({row.id}) was deleted")
    return found


def _refuse_code(row: JobRow) -> None:
    if row.origin != API:
        where = "a file" if row.origin == "file" else "code"
        raise DefinedInCode(f"the job {row.name} of app {row.app} is defined in {where}: change it there and deploy")


def _replaced(tx: Tx, namespace: str, known: JobRow, wanted: JobToStore, actor: str) -> Written:
    _refuse_code(known)
    if (wanted.app, wanted.definition.name) != (known.app, known.name):
        raise DefinitionError("a job keeps its name and its app: make another job, and delete this one")
    number = tx.one("version_with", **_where(namespace, wanted), digest=wanted.digest)
    if number is not None and number[0] == known.version:
        return Written(known, is_changed=False)
    return Written(_write(tx, namespace, wanted, known, known.id, actor))


def _write(tx: Tx, namespace: str, wanted: JobToStore, known: JobRow | None, id: str, actor: str) -> JobRow:
    about, app = wanted.definition, wanted.app
    where = _where(namespace, wanted)
    _refuse_cycle(tx, namespace, wanted)
    needed = requirement.written(about.needs)
    tx.run("add_namespace", namespace=namespace)
    tx.run("add_queues", namespace=namespace, queues=[(about.queue,)])
    lane = (about.name, about.queue, needed, wanted.runs)
    tx.run("add_lanes", namespace=namespace, app=app, lanes=[lane])
    tx.run(
        "add_job_version",
        **where,
        digest=wanted.digest,
        definition=content(about),
        source=wanted.source,
        template=wanted.template,
        actor=actor,
    )
    ((version,),) = tx.rows("version_with", **where, digest=wanted.digest)
    columns = {"version": version, "requirements": needed, "pause_after": about.pause_after, "runs": wanted.runs}
    if known is None:
        check_quota(tx, namespace, "max_jobs")
        base: dict[str, int] = dict(tx.rows("deleted_versions", namespace=namespace, app=app, names=[about.name]))
        tx.run("add_api_job", id=id, actor=actor, base=base.get(about.name, 0), **where, **columns)
    else:
        tx.run("change_api_job", **where, **columns)
    _set_schedules(tx, namespace, wanted, actor)
    dependencies.put(tx, (namespace, app, about.name), about)
    subscriptions.put(tx, namespace, app, about.name, about)
    action = "job.create" if known is None else "job.change"
    before = None if known is None else _shown(known.source)
    audit(tx, namespace, actor, action, f"{app}.{about.name}", before=before, after=_shown(wanted.source))
    row = reader.with_id(tx, namespace, id)
    assert row is not None, "it was written in this transaction"
    return row


def _set_schedules(tx: Tx, namespace: str, wanted: JobToStore, actor: str) -> None:
    """Makes the job's own schedules those that are wanted. Others that were made for it at run time stay."""
    name = wanted.definition.name
    names = {name if number == 1 else f"{name}:{number}": spec for number, spec in enumerate(wanted.schedules, 1)}
    for known, origin in tx.rows("schedules_of_job", **_where(namespace, wanted)):
        if origin == API and known not in names:
            schedule.remove(tx, namespace, wanted.app, known, actor)
    for one, spec in names.items():
        schedule.put(tx, namespace, wanted.app, one, spec, actor, origin=API)


def _refuse_cycle(tx: Tx, namespace: str, wanted: JobToStore) -> None:
    own = JobRef(wanted.app, wanted.definition.name)
    known: dict[JobRef, list[JobRef]] = {}
    for edge in edges(tx, namespace):
        known.setdefault(edge.dependent, []).append(edge.ref)
    known[own] = [one.ref for one in wanted.definition.depends_on]
    if found := dependency.cycle(known, [own]):
        raise Cycle(f"jobs would depend on each other, so none of them would start: {' → '.join(map(str, found))}")


def _cancel_pending(tx: Tx, namespace: str, row: JobRow, actor: str) -> int:
    found = tx.rows("pending_of_job", namespace=namespace, app=row.app, job=row.name, most=MOST_CANCELLED)
    for (id,) in found:
        control.cancel(tx, namespace, id, actor)
    return len(found)


def _where(namespace: str, wanted: JobToStore) -> dict[str, str]:
    return {"namespace": namespace, "app": wanted.app, "job": wanted.definition.name}


def _shown(source: str | None) -> object:
    return None if source is None else msgspec.Raw(source.encode())
