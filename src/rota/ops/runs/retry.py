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
from rota.domain.workflow import run_arguments, undo
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.letters import is_kept
from rota.ops import dependencies
from rota.ops.after_end import follow
from rota.ops.audit import audit
from rota.ops.place import Batch, Origin, find_route, place
from rota.ops.runs.advance import look_at
from rota.ops.runs.kept import missing_result
from rota.ops.runs.opening import add_runs
from rota.ops.runs.run import Pinned, Run, encode_pinned, pinned, pinned_graph, pinned_jobs
from rota.ops.runs.undo import undo_letters
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
    stopping: str | None
    undo: str | None
    base: int
    """The shown version is the stored number minus this one: shown numbers count from 1 for each workflow."""
    latest_base: int


class Request(msgspec.Struct, frozen=True):
    """How to retry: from which step (`start` for all), with which arguments, and of which version of the workflow."""

    from_: str | None = None
    arguments: str | None = None
    step_arguments: Mapping[str, dict[str, Any]] = {}
    latest: bool = False
    version: int | None = None
    """The number of the version instead: that of the run, or the one in force."""


def retry(tx: Tx, namespace: str, id: str, new_id: str, actor: str, request: Request) -> str:
    """Opens the new run and returns its id. It refers to the results of kept steps, and does not copy them."""
    ended = _ended(tx, namespace, id)
    request = _with_version(ended, request)
    old = pinned_graph(tx, _version(ended, ended.version, ended.graph))
    letters_of_undo = undo_letters(tx, ended.undo)
    if request.from_ is None and undo.failures(letters_of_undo):
        return _retry_undos(tx, ended, old, letters_of_undo, new_id, actor, request)
    new = pinned_graph(tx, _version(ended, ended.latest, ended.latest_graph)) if request.latest else old
    plan = plans.plan(
        old,
        ended.letters,
        request.from_,
        has_arguments=request.arguments is not None,
        step_arguments=request.step_arguments,
        latest=new if request.latest else None,
        undone=undo.undone(letters_of_undo),
    )
    if request.arguments is not None:
        run_arguments.check(new, request.arguments)
    kept = {new.steps[number].id: number for number, letter in enumerate(plan.letters) if is_kept(letter)}
    _check_results(tx, ended, old, kept, [old.numbers[new.steps[number].id] for number in plan.partial])
    run = _new_run(tx, ended, old, new, plan, new_id, actor, request)
    return _begin(tx, ended, run, [(old.numbers[name], number) for name, number in kept.items()], actor, request)


def _retry_undos(
    tx: Tx, ended: Ended, graph: Graph, letters_of_undo: str, id: str, actor: str, request: Request
) -> str:
    """Opens a run that keeps every step, so that it is undone at once. Its undo keeps the undos that succeeded."""
    if request.latest or request.step_arguments or request.arguments is not None:
        raise UsageError(
            "undos of the run have failed, and a retry repeats only these, without changes: to run steps again, name "
            "the step from which to retry"
        )
    failed = undo.failures(letters_of_undo)
    _check_results(tx, ended, graph, {graph.steps[number].id: number for number in failed}, ())
    plan = plans.Retry(ended.letters.upper(), (), ())
    run = _new_run(tx, ended, graph, graph, plan, id, actor, request)
    about = msgspec.structs.replace(pinned(run.pinned), earlier_undo=ended.undo)
    run = msgspec.structs.replace(run, pinned=encode_pinned(about), stopping=ended.stopping, deadline=None)
    return _begin(tx, ended, run, [(number, number) for number in range(len(graph.steps))], actor, request)


def _begin(tx: Tx, ended: Ended, run: Run, kept: Sequence[tuple[int, int]], actor: str, request: Request) -> str:
    """Opens the new run. `kept` are the numbers of the kept steps, in the old graph and in the new one."""
    _place(tx, ended, run.id, actor, request)
    add_runs(tx, [run])
    tx.run("keep_steps", run=run.id, old=ended.id, rows=list(kept))
    tx.run("undead", namespace=ended.namespace, ids=[ended.id])
    tx.run("mark_replayed", rows=[(ended.id, run.id)])
    audit(tx, ended.namespace, actor, "run.retry", ended.id, after=run.id)
    follow(tx, look_at(tx, [run]))
    return run.id


def _ended(tx: Tx, namespace: str, id: str) -> Ended:
    found = tx.records("ended_run", Ended, id=reader.known(id), namespace=namespace)
    if found and found[0].parent is None:
        return found[0]
    if found:
        raise UsageError(f"{id} is a step of run {found[0].parent}: retry that run")
    status = reader.status(tx, namespace, id)  # Raises if there is no such execution.
    if status in TERMINAL:
        raise UnknownExecution(f"{id} is not a run of a workflow, so it cannot be retried as one: replay it instead")
    raise Conflict(f"run {id} is {status}: wait for its end, or cancel it first")


def _with_version(ended: Ended, request: Request) -> Request:
    if request.version is None:
        return request
    own, latest = ended.version - ended.base, ended.latest - ended.latest_base
    if request.version not in (own, latest):
        raise UsageError(
            f"a retry is of version {own}, which the run is of, or of version {latest}, which is in force, not of "
            f"{request.version}"
        )
    return msgspec.structs.replace(request, latest=request.version != own)


def _version(ended: Ended, number: int, digest: str) -> _Version:
    return _Version(ended.namespace, ended.app, ended.job, number, digest)


class _Version(msgspec.Struct, frozen=True):
    namespace: str
    app: str
    job: str
    version: int
    graph: str


def _check_results(tx: Tx, ended: Ended, old: Graph, kept: Mapping[str, int], partial: Sequence[int]) -> None:
    """Refuses a retry that would keep a result which retention has deleted."""
    gone = missing_result(tx, ended.id, [old.numbers[name] for name in kept], partial)
    if gone is not None:
        name = old.steps[gone].id
        raise Conflict(f"retention has deleted the result of step {name}: retry from {name!r} or an earlier step")


def _new_run(
    tx: Tx, ended: Ended, old: Graph, graph: Graph, plan: plans.Retry, id: str, actor: str, request: Request
) -> Run:
    before = pinned(ended.pinned)
    jobs = before.jobs
    if request.latest:
        jobs = pinned_jobs(tx, ended.namespace, ended.app, graph.callees)
    about = Pinned(
        jobs,
        str(actor),
        before.priority,
        before.headers,
        before.trace,
        tx.now,
        partial={number: (ended.id, old.numbers[graph.steps[number].id]) for number in plan.partial},
        sub_retries={number: (ended.id, old.numbers[graph.steps[number].id]) for number in plan.sub_retries},
        latest=request.latest,
        arguments={**before.arguments, **request.step_arguments},
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
        retry_of=ended.id,
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
