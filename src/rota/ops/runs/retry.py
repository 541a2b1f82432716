"""Retrying a run that has ended: a new run that keeps the steps which need not run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rota.domain.blocker import Kind
from rota.domain.errors import Conflict, UnknownExecution, UsageError
from rota.domain.instant import MICROSECONDS
from rota.domain.status import TERMINAL
from rota.domain.workflow import retry as plans
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.letters import is_kept
from rota.ops import dependencies
from rota.ops.after_end import follow
from rota.ops.audit import audit
from rota.ops.place import Batch, Origin, find_route, place
from rota.ops.runs.advance import look_at
from rota.ops.runs.opening import add_runs
from rota.ops.runs.run import Pinned, Run, encode_pinned, graph_of, pinned, pinned_jobs
from rota.store import reader
from rota.store.port import Tx


class Ended(msgspec.Struct, frozen=True, array_like=True):
    """A run that has ended, with what its retry takes over."""

    id: str
    namespace: str
    app: str
    job: str
    queue: str
    priority: int
    arguments: str
    tags: str | None
    headers: str | None
    parent: str | None
    version: int
    graph: str
    latest: int
    latest_graph: str
    pinned: str
    letters: str


class Request(msgspec.Struct, frozen=True):
    """How to retry: from which step (`start` for all), with which arguments, and of which version of the workflow."""

    from_: str | None = None
    arguments: str | None = None
    step_arguments: Mapping[str, dict[str, Any]] = {}
    latest: bool = False


def retry(tx: Tx, namespace: str, id: str, new_id: str, actor: str, request: Request) -> str:
    """Opens the new run and returns its id. Results of kept steps are referred to, not copied."""
    ended = _ended(tx, namespace, id)
    old = graph_of(tx, _version(ended, ended.version, ended.graph))
    new = graph_of(tx, _version(ended, ended.latest, ended.latest_graph)) if request.latest else old
    plan = plans.plan(
        old,
        ended.letters,
        request.from_,
        has_arguments=request.arguments is not None,
        step_arguments=request.step_arguments,
        latest=new if request.latest else None,
    )
    kept = {new.steps[number].id: number for number, letter in enumerate(plan.letters) if is_kept(letter)}
    _check_results(tx, ended, old, kept, [old.numbers[new.steps[number].id] for number in plan.partial])
    run = _new_run(tx, ended, old, new, plan, new_id, actor, request)
    _place(tx, ended, new_id, actor, request)
    add_runs(tx, [run], retry_of=id)
    tx.run("keep_steps", run=new_id, old=id, rows=[(old.numbers[name], number) for name, number in kept.items()])
    tx.run("undead", namespace=namespace, ids=[id])
    tx.run("mark_replayed", rows=[(id, new_id)])
    audit(tx, namespace, actor, "run.retry", id, after=new_id)
    follow(tx, look_at(tx, [run]))
    return new_id


def _ended(tx: Tx, namespace: str, id: str) -> Ended:
    found = tx.records("ended_run", Ended, id=reader.known(id), namespace=namespace)
    if found and found[0].parent is None:
        return found[0]
    if found:
        raise UsageError(f"{id} is a step of run {found[0].parent}: retry that run")
    status = reader.status(tx, namespace, id)  # Raises if there is no such execution.
    if status in TERMINAL:
        raise UnknownExecution(f"{id} is not a run of a workflow: replay it")
    raise Conflict(f"run {id} is {status}: wait for its end, or cancel it first")


def _version(ended: Ended, number: int, digest: str) -> _Version:
    return _Version(ended.namespace, ended.app, ended.job, number, digest)


class _Version(msgspec.Struct, frozen=True):
    namespace: str
    app: str
    job: str
    version: int
    graph: str


def _check_results(tx: Tx, ended: Ended, old: Graph, kept: Mapping[str, int], partial: Sequence[int]) -> None:
    """Refuses a retry that would keep a result which retention has deleted. Locked, so that none is deleted now."""
    numbers = [old.numbers[name] for name in kept]
    if numbers or partial:
        tx.rows("lock_kept", run=ended.id, numbers=[*numbers, *partial])
    if numbers and (gone := tx.one("missing_result", run=ended.id, numbers=numbers)):
        name = old.steps[gone[0]].id
        raise Conflict(f"the result of step {name} is deleted by now: retry from {name!r} or an earlier step")


def _new_run(
    tx: Tx, ended: Ended, old: Graph, graph: Graph, plan: plans.Retry, id: str, actor: str, request: Request
) -> Run:
    before = pinned(ended.pinned)
    jobs = before.jobs
    if request.latest:
        jobs = pinned_jobs(tx, ended.namespace, ended.app, graph.callees)
    about = Pinned(
        jobs,
        actor,
        before.priority,
        before.headers,
        before.trace,
        {number: (ended.id, old.numbers[graph.steps[number].id]) for number in plan.partial},
        {**before.arguments, **request.step_arguments},
    )
    return Run(
        id=id,
        root=id,
        parent=None,
        parent_step=None,
        parent_item=None,
        depth=0,
        version=ended.latest if request.latest else ended.version,
        opened_at=tx.now,
        deadline=None if graph.timeout is None else tx.now + round(graph.timeout * MICROSECONDS),
        paused_at=None,
        namespace=ended.namespace,
        app=ended.app,
        job=ended.job,
        graph=ended.latest_graph if request.latest else ended.graph,
        pinned=encode_pinned(about),
        letters=plan.letters,
        stopping=None,
    )


def _place(tx: Tx, ended: Ended, id: str, actor: str, request: Request) -> None:
    """The execution of the new run, which waits for its steps from the start."""
    route = find_route(tx, ended.namespace, ended.app, ended.job, ended.queue)
    assert route is not None, "the workflow was declared when the first run was accepted"
    origin = Origin(actor=actor, replay_of=ended.id, tags=ended.tags, headers=ended.headers)
    arguments = ended.arguments if request.arguments is None else request.arguments
    waits = ((Kind.RUN, id),)
    place(tx, [Batch({id: arguments}, route, origin, ended.priority, tx.now, blockers=waits)])
    if route.depends:
        dependencies.clear(tx, (ended.namespace, ended.app, ended.job))
