"""Jobs that start after other jobs.

Each edge holds the execution of its upstream whose end counts for the next round. When all edges of a job are met, the
transaction that ended the last upstream places an execution and clears the edges. While the job is queued or runs, the
edges stay met: the end of the job looks at them again. If the job has a schedule, its ticks place it: a tick takes the
edges that are met, and waits behind a blocker for each of the others. An end that releases a tick is used by it.

The edges of a job are the lock for its rounds. They are locked after the state rows of executions, in the order of
their key. A waiting tick is locked after the edges, but never waited for: see `blockers.release_first`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

import msgspec

from rota import ids
from rota.domain import dependency, job, unique
from rota.domain.blocker import Kind
from rota.domain.dependency import JobRef
from rota.domain.job import Definition
from rota.ops import blockers
from rota.ops.end_record import End
from rota.ops.place import Batch, Blocker, Origin, find_route, place
from rota.store.dependencies import Edge, edges
from rota.store.port import Tx

KNOWN_S = 1.0
"""The list of jobs with dependencies is cached for this long."""
AT_ONCE = -1.0
ACTOR = "dependency"
OneJob = tuple[str, str, str]
"""Namespace, app and job."""
Taken = tuple[tuple[Blocker, ...], str | None]
"""The blockers of a tick, and the upstream executions that have ended already, as JSON."""
_names = msgspec.json.Decoder(list[str]).decode
_by_label = msgspec.json.Decoder(dict[str, str]).decode


def start_dependents(tx: Tx, ends: Sequence[End]) -> None:
    """A consequence of ends: the jobs that depend on these executions, and those that ended themselves, may start."""
    concerned = _concerned(tx.recent("awaited_ends", KNOWN_S)[1])
    if not concerned:
        return
    counted = {
        end.id: end.status
        for end in ends
        if end.run is None and not end.is_repeated and (not end.job or end.job in concerned)
    }
    if not counted:
        return
    rows = tx.rows("ended_jobs", ids=list(counted), lowest=min(counted), highest=max(counted))
    ended = {id: tuple(of) for id, *of in rows}
    known = tx.records("lock_edges_after", Edge, jobs=sorted(set(ended.values())))
    behind: dict[tuple[str, ...], list[Edge]] = {}
    for edge in known:
        behind.setdefault((edge.namespace, edge.upstream_app, edge.upstream), []).append(edge)
    met: dict[tuple[str, ...], list[str]] = {}
    for id, status in counted.items():
        for edge in behind.get(ended.get(id, ()), ()):
            if edge.outcome.counts(status):
                met.setdefault(edge.key, []).append(id)
    _place(tx, _with_ends(tx, known, met))


def _with_ends(tx: Tx, known: Sequence[Edge], ended: Mapping[tuple[str, ...], list[str]]) -> list[Edge]:
    """Uses each end for the first tick that waits for it, or else for the next round, unless that has one already."""
    keys = [_key(edge) for edge in known if edge.key in ended]
    waited_for = {row[0] for row in tx.rows("keys_with_blocked", kind=Kind.DEPENDENCY, keys=keys)} if keys else set()
    now = []
    for edge in known:
        left = ended.get(edge.key, [])
        while left and _key(edge) in waited_for:
            _release(tx, edge, left[0])
            left = left[1:]
            if tx.one("has_blocked", kind=Kind.DEPENDENCY, key=_key(edge)) is None:
                waited_for.remove(_key(edge))
        now.append(msgspec.structs.replace(edge, met=left[-1]) if left and edge.met is None else edge)
    _write(tx, known, now)
    return now


def _release(tx: Tx, edge: Edge, ended: str) -> None:
    released = blockers.release_first(tx, Kind.DEPENDENCY, _key(edge))
    if released is not None:
        found = tx.one("upstream_of", id=released)
        before = _by_label(found[0]) if found and found[0] else {}
        tx.run("set_upstream", id=released, upstream=_encoded({**before, dependency.label(edge.ref, edge.app): ended}))


def _place(tx: Tx, known: Sequence[Edge]) -> None:
    """Starts the jobs whose edges are all met, unless they have a schedule or have not ended. The edges are locked."""
    complete = {one: of for one, of in _by_job(known).items() if all(edge.met for edge in of)}
    if not complete:
        return
    free = [tuple(row) for row in tx.rows("free_dependents", jobs=sorted(complete))]
    place(tx, [batch for one in free if (batch := _batch(tx, one, complete[one])) is not None])
    used = [edge for one in free for edge in complete[one]]
    _write(tx, used, [msgspec.structs.replace(edge, met=None) for edge in used])


def _batch(tx: Tx, of: OneJob, met: Sequence[Edge]) -> Batch | None:
    namespace, app, name = of
    found = tx.one("job_definition", namespace=namespace, app=app, job=name)
    about = job.decode(found[0]) if found else Definition(name=name)
    route = find_route(tx, namespace, app, name, about.queue)
    if route is None:
        return None
    # An end is used once, so the ids of the ends make a name that is used once.
    id = ids.named(tx.now, " ".join((*of, *(edge.met or "" for edge in met))))
    deadline = unique.start_deadline(tx.now, None, about.start_within_s)
    origin = Origin(actor=ACTOR, upstream=_upstream(met))
    return Batch({id: about.arguments}, route, origin, about.priority, tx.now, deadline=deadline)


def take(tx: Tx, ticks: Sequence[tuple[str, OneJob]]) -> dict[str, Taken]:
    """For each execution of a tick: the upstreams that it waits for, and the upstream executions that have ended."""
    known = tx.records("lock_edges", Edge, jobs=sorted({of for _, of in ticks}))
    left, taken = _by_job(known), {}
    for id, of in ticks:
        left.setdefault(of, [])
        met = [edge for edge in left[of] if edge.met]
        behind = tuple((Kind.DEPENDENCY, _key(edge)) for edge in left[of] if not edge.met)
        taken[id] = (behind, _upstream(met) if met else None)
        left[of] = [msgspec.structs.replace(edge, met=None) for edge in left[of]]
    _write(tx, known, [edge for of in left.values() for edge in of])
    return taken


def clear(tx: Tx, of: OneJob) -> None:
    """The job was enqueued by other means: its next round begins now."""
    known = tx.records("lock_edges", Edge, jobs=[of])
    _write(tx, known, [msgspec.structs.replace(edge, met=None) for edge in known])


# --- Declarations --------------------------------------------------------------------------------


def check(tx: Tx, namespace: str, app: str, definitions: Iterable[Definition]) -> None:
    """Refuses unknown upstreams and cycles, also through other apps. `definitions` are all jobs of the app."""
    own = {JobRef(app, one.name): one.depends_on for one in definitions}
    if not any(own.values()):
        return
    apps = {one.app for upstreams in own.values() for one in upstreams} - {app}
    known = {*own, *(JobRef(*row) for row in tx.rows("jobs_of_apps", namespace=namespace, apps=sorted(apps)))}
    others: dict[JobRef, list[JobRef]] = {}
    for edge in edges(tx, namespace):
        if edge.app != app:
            others.setdefault(edge.dependent, []).append(edge.ref)
    dependency.check(own, known, others)


def declare(tx: Tx, namespace: str, app: str, definitions: Iterable[Definition]) -> None:
    """Sets the edges of all jobs of the app. Edges that stay keep what they have met."""
    _set(tx, namespace, app, tx.records("lock_edges_of_app", Edge, namespace=namespace, app=app), definitions)


def put(tx: Tx, of: OneJob, about: Definition | None) -> None:
    """Sets the edges of one job; None removes them."""
    namespace, app, _ = of
    _set(tx, namespace, app, tx.records("lock_edges", Edge, jobs=[of]), [] if about is None else [about])


def _set(tx: Tx, namespace: str, app: str, known: Iterable[Edge], definitions: Iterable[Definition]) -> None:
    before = {edge.key: edge for edge in known}
    after = {}
    for about in definitions:
        for one in about.depends_on:
            edge = Edge(namespace, app, about.name, one.app, one.job, one.outcome)
            same = before.get(edge.key)
            after[edge.key] = same if same is not None and same.outcome is one.outcome else edge
    gone = sorted(before.keys() - after.keys())
    changed = [edge for key, edge in sorted(after.items()) if before.get(key) is not edge]
    if gone:
        tx.run("drop_edges", rows=gone)
        for key in gone:
            blockers.release(tx, Kind.DEPENDENCY, _key(before[key]), blockers.MOST)
            blockers.lift(tx, Kind.DEPENDENCY, _key(before[key]))
    if changed:
        tx.run("put_edges", rows=changed)
    if gone or changed:
        tx.recent("awaited_ends", AT_ONCE)
    _place(tx, [edge for _, edge in sorted(after.items())])


# --- Edges ----------------------------------------------------------------------------------------


def _write(tx: Tx, before: Iterable[Edge], after: Iterable[Edge]) -> None:
    known = {edge.key: edge for edge in before}
    if changed := [edge for edge in after if edge != known[edge.key]]:
        tx.run("put_edges", rows=changed)


def _by_job(known: Iterable[Edge]) -> dict[OneJob, list[Edge]]:
    return {of: list(edges) for of, edges in groupby(known, key=lambda edge: (edge.namespace, edge.app, edge.job))}


def _key(edge: Edge) -> str:
    """The key of the blocker; no name contains a slash."""
    return "/".join(edge.key)


def _upstream(met: Iterable[Edge]) -> str:
    return _encoded({dependency.label(edge.ref, edge.app): edge.met for edge in met})


def _encoded(by_label: Mapping[str, str | None]) -> str:
    return msgspec.json.encode(by_label, order="sorted").decode()


@lru_cache(maxsize=10)
def _concerned(listed: str | None) -> frozenset[str]:
    return frozenset(_names(listed)) if listed else frozenset()
