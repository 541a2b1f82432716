"""A workflow: a graph of steps, made from a function or from data."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, Unpack

import msgspec

from rota.domain.dependency import JobRef
from rota.domain.errors import DefinitionError, WorkflowError
from rota.domain.job import Definition
from rota.domain.workflow import drawing, run_arguments
from rota.domain.workflow import graph as graphs
from rota.domain.workflow.check import Callee, Problem, check
from rota.domain.workflow.graph import Graph
from rota.sdk.job import Job, registered
from rota.sdk.options import Options
from rota.sdk.run import Run, run_of
from rota.sdk.workflow.stepped import P, Stepped, Stepping, T, check_enqueue


class GraphSource(Protocol):
    """Where the graph comes from."""

    def problems(self) -> list[WorkflowError]:
        """The problems that are found before the graph is made."""

    def make(self) -> Graph | list[WorkflowError]:
        """The graph, unchecked; or everything that was wrong while it was made."""

    def error(self, problem: Problem) -> WorkflowError:
        """A problem of the graph, with its place."""

    def callee(self) -> Callee:
        """The parameters and the result, for the checks of workflows that have it as a step."""


class Surroundings(Protocol):
    """The part of the app that a workflow needs."""

    @property
    def jobs(self) -> Mapping[str, Job[..., Any, Any]]: ...

    @property
    def workflows(self) -> Mapping[str, Workflow[..., Any]]: ...


class Callees(Mapping[str, Callee]):
    """The jobs and workflows that steps can run, looked up when needed."""

    def __init__(self, known: Mapping[str, Stepped[..., Any]]) -> None:
        self._known = known

    def __getitem__(self, name: str) -> Callee:
        return self._known[name]._callee()

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Built(msgspec.Struct, frozen=True):
    graph: Graph
    definition: Definition


class Workflow(Stepped[P, T]):
    """`P` are the parameters of a run, `T` is the type of its result.

    The graph is made on first use, so workflows may name each other and themselves. `_job` holds the definition without
    the graph, the signature and the options; a run is an execution of it.
    """

    _version: int | None = None
    """The version that a start asks for; None for the one in force."""

    def __init__(
        self, job: Job[P, T, Any], source: GraphSource, app: Surroundings, built: Callable[[Definition], None]
    ) -> None:
        """`built` is called once with the definition, when the graph is made."""
        self._job = job
        self._source = source
        self._surroundings = app
        self._register = built
        self._made: list[Built] = []
        """Empty until the graph is made. A list, because copies with other options share it."""
        self._lock = threading.Lock()
        self.__doc__ = job.__doc__

    @property
    def name(self) -> str:
        return self._job.name

    @property
    def _ref(self) -> JobRef:
        return self._job._ref

    @property
    def _definition(self) -> Definition:
        """The workflow as the database stores it: its graph is part of its version."""
        return self._build().definition

    def __repr__(self) -> str:
        return f"Workflow({self._job._app}.{self.name})"

    def options(self, *, version: int | None = None, **given: Unpack[Options]) -> Self:
        """The same workflow with these options. With `version`, a run has the graph and parameters of that version.

        The arguments of such a run must be given by name.
        """
        changed = copy.copy(self)
        if version is not None:
            if isinstance(version, bool) or not isinstance(version, int):
                raise DefinitionError(f"version must be a number, not {version!r}")
            changed._version = version
        changed._job = self._job.options(**given)
        return changed

    def within(self, connection: Any, *, notify: bool = False) -> Self:
        """The same workflow, started in the transaction of `connection`; see `Job.within`."""
        changed = copy.copy(self)
        changed._job = self._job.within(connection, notify=notify)
        return changed

    def start(self, *args: P.args, **kwargs: P.kwargs) -> Run[T]:
        """Accepts one run: when this returns, it is on the disk. It opens when a worker of the app claims it."""
        return run_of(self._to_start().enqueue(*args, **kwargs))

    async def astart(self, *args: P.args, **kwargs: P.kwargs) -> Run[T]:
        """`start`, without blocking the event loop."""
        return run_of(await (await self._ato_start()).aenqueue(*args, **kwargs))

    def start_many(self, calls: Iterable[Any]) -> list[Run[T]]:
        """Accepts all runs or none. Each call is a dict of arguments by name, a tuple, or a single argument."""
        return [run_of(one) for one in self._to_start().enqueue_many(calls)]

    async def astart_many(self, calls: Iterable[Any]) -> list[Run[T]]:
        """`start_many`, without blocking the event loop."""
        return [run_of(one) for one in await (await self._ato_start()).aenqueue_many(calls)]

    def handle(self, id: str) -> Run[T]:
        """A handle on a run of this workflow whose id is known."""
        return run_of(self._job.handle(id))

    if not TYPE_CHECKING:  # Type checkers refuse such calls and attributes themselves.

        def __call__(self, *_: Any, **__: Any) -> NoReturn:
            """A workflow cannot be called like a function."""
            raise TypeError(
                f"a workflow is not called: write {self.name}.start(…), or {self.name}.step(…) in a workflow"
            )

        def __getattr__(self, name: str) -> NoReturn:
            if name in ("enqueue", "aenqueue", "enqueue_many", "aenqueue_many"):
                verb = name.replace("enqueue", "start")
                raise AttributeError(f"a workflow has no {name}: write {self.name}.{verb}(…)")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def graph(self) -> Graph:
        """The graph; the first call makes and checks it. Raises a WorkflowError."""
        return self._build().graph

    def to_data(self) -> dict[str, Any]:
        """The graph as JSON values: the form that `app.workflow_from` reads."""
        return graphs.to_data(self.graph())

    def mermaid(self) -> str:
        """A picture of the graph as Mermaid text."""
        return drawing.mermaid(self.graph())

    def dot(self) -> str:
        """A picture of the graph for Graphviz."""
        return drawing.dot(self.graph())

    def text(self) -> str:
        """The steps as lines of text."""
        return drawing.text(self.graph())

    def check(self) -> None:
        """Makes the graph and raises a WorkflowError if anything is wrong with it; needs no database."""
        self._build()

    def problems(self) -> list[WorkflowError]:
        """Everything that is wrong; what `check` raises is the first."""
        made = self._graph_or_problems()
        return made if isinstance(made, list) else []

    def _to_start(self) -> Job[P, T, Any]:
        """The job that a start enqueues. If a version was asked for, reads its graph from the database."""
        check_enqueue(self.name, self._job._options, "start")
        self.check()
        for name in ("retry", "timeout"):
            if name in self._job._options:
                raise DefinitionError(f"a run has no {name}= of its own: give @app.workflow(timeout=…), or its jobs")
        if self._version is None:
            return self._job
        number, graph = self._job._client.workflow_version(self.name, self._version)
        return self._job._of_version(number, partial(run_arguments.encode, graph))

    async def _ato_start(self) -> Job[P, T, Any]:
        return self._to_start() if self._version is None else await asyncio.to_thread(self._to_start)

    def _callee(self) -> Callee:
        return self._source.callee()

    def _stepping(self) -> Stepping:
        about = self._job._stepping()
        return about._replace(is_workflow=True, options={**about.options, "version": self._version})

    def _build(self) -> Built:
        with self._lock:
            if not self._made:
                self._made.append(self._built())
                self._register(self._made[0].definition)
            return self._made[0]

    def _graph_or_problems(self) -> Graph | list[WorkflowError]:
        """The graph, or all problems of the first check that finds any: of the source, of the build, of the graph.

        Later checks are skipped: they would report consequences of the same problems.
        """
        if found := self._source.problems():
            return found
        made = self._source.make()
        if isinstance(made, list):
            return made
        problems = check(made, Callees(self._surroundings.jobs), Callees(self._surroundings.workflows))
        return [self._source.error(problem) for problem in problems] or made

    def _built(self) -> Built:
        graph = self._graph_or_problems()
        if isinstance(graph, list):
            raise graph[0]
        target = {"kind": "workflow", "graph": graphs.to_data(graph)}
        return Built(graph, msgspec.structs.replace(registered(self._job).definition, target=target))
