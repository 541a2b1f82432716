"""An open run as its row, its pinned graph, and what was pinned of its jobs."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from rota.domain import job
from rota.domain.errors import Conflict
from rota.domain.status import TERMINAL, Status
from rota.domain.workflow import graph as graphs
from rota.domain.workflow import undo
from rota.domain.workflow.graph import Graph
from rota.store.port import View


class Run(msgspec.Struct, frozen=True, array_like=True):
    """A row of `run`."""

    id: str
    root: str
    parent: str | None
    parent_step: int | None
    parent_item: int | None
    depth: int
    version: int
    opened_at: int
    deadline: int | None
    paused_at: int | None
    namespace: str
    app: str
    job: str
    graph: str
    pinned: str
    letters: str
    stopping: str | None
    """Why the run is stopping; None if it is not."""
    undo: str | None = None
    """The id of the run that undoes it, if the run is undoing."""
    undo_of: str | None = None
    """The run that this one undoes."""
    retry_of: str | None = None
    """The run that this one retries. It is set only while the run opens: queries do not read it."""


class PinnedJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a job's definition that the steps of a run use, as it was when the run opened."""

    version: int
    queue: str
    priority: int = 0
    start_within_s: float | None = None
    first: str | None = None
    """The name of its first parameter. If the job undoes a step, this parameter takes the result of the step."""


class Pinned(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data that all steps of a run share."""

    jobs: dict[str, PinnedJob]
    actor: str = ""
    priority: int | None = None
    headers: str | None = None
    trace: str | None = None
    scheduled_for: int = 0
    """The tick of the run's schedule, or the time for which the run was requested."""
    partial: dict[int, tuple[str, int]] = {}
    """By the number of a map: the earlier run whose successful items a retry keeps, and the map's number there."""
    sub_retries: dict[int, tuple[str, int]] = {}
    """By the number of a step that is a workflow: the earlier run whose sub-runs are retried, and the step's number
    there."""
    latest: bool = False
    """Whether the retry was requested with the latest versions: sub-runs of other versions start from scratch."""
    arguments: dict[str, dict[str, Any]] = {}
    """By the name of a step: the arguments that a retry gave it."""
    earlier_undo: str | None = None
    """In a retry of failed undos: the earlier undo, whose successful undos are kept. In the retry itself this is the
    undo of the retried run, and in an undo below it the earlier undo of the same sub-run."""


_decode_pinned = msgspec.json.Decoder(Pinned).decode
_graphs: dict[str, Graph] = {}
MOST_GRAPHS = 1_000


@lru_cache(maxsize=10_000)
def pinned(text: str) -> Pinned:
    return _decode_pinned(text)


def encode_pinned(value: Pinned) -> str:
    return msgspec.json.encode(value).decode()


class OfVersion(Protocol):
    """Anything that names a version of a workflow and its digest."""

    @property
    def namespace(self) -> str: ...
    @property
    def app(self) -> str: ...
    @property
    def job(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def graph(self) -> str: ...


class OfRun(OfVersion, Protocol):
    """A run, open or not."""

    @property
    def letters(self) -> str: ...
    @property
    def undo_of(self) -> str | None: ...


def not_open(id: str, status: Status) -> Conflict:
    """The error for a request that needs an open run."""
    if status in TERMINAL:
        return Conflict(f"run {id} has ended already ({status})")
    return Conflict(f"run {id} is not open yet: no worker has opened it")


def graph_of(view: View, run: OfRun) -> Graph:
    """The graph of a run. The graph of an undo is derived from that of the undone run."""
    graph = pinned_graph(view, run)
    return graph if run.undo_of is None else undo.undo_graph(graph, run.letters)


def pinned_graph(view: View, run: OfVersion) -> Graph:
    """The graph of a version of a workflow. It is decoded once per process and cached by its digest."""
    known = _graphs.get(run.graph)
    if known is None:
        where = {"namespace": run.namespace, "app": run.app, "job": run.job, "version": run.version}
        found = view.one("definition_of_version", **where)
        assert found is not None, f"version {run.version} of workflow {run.job} is kept while its runs are open"
        known = decoded_graph(found[0])
        if len(_graphs) >= MOST_GRAPHS:
            _graphs.clear()
        _graphs[run.graph] = known
    return known


def decoded_graph(definition: str) -> Graph:
    """The graph in the stored definition of a workflow."""
    return graphs.decode(msgspec.json.encode(job.decode(definition).target["graph"]))


def pinned_jobs(view: View, namespace: str, app: str, names: Collection[str]) -> dict[str, PinnedJob]:
    """The definitions in force of the jobs that have one."""
    found = view.rows("definitions_in_force", namespace=namespace, app=app, jobs=sorted(set(names)))
    return {name: _pinned_job(version, definition) for name, version, definition in found}


def _pinned_job(version: int, definition: str) -> PinnedJob:
    about = job.decode(definition)
    return PinnedJob(version, about.queue, about.priority, about.start_within_s, about.first_parameter)
