"""The inside of an app: what its code has declared, and its way to the database.

Users see `App`. The engine, the commands and the harness get the registry by `registry_of(app)` in `sdk/app.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rota.config import Settings
from rota.domain import breaker, dependency, names
from rota.domain import source as sources
from rota.domain.breaker import DEFAULT_FAILURES, DEFAULT_WAIT, Breaker
from rota.domain.dependency import JobRef
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.domain.job import Definition, Queue
from rota.domain.lifecycle import Rules
from rota.domain.schedule import Spec
from rota.domain.source import Source
from rota.executors import kinds
from rota.executors.function import FunctionExecutor
from rota.executors.port import Executor
from rota.executors.signature import Signature
from rota.sdk import declaration
from rota.sdk.client import Client
from rota.sdk.completion import JobCompletions
from rota.sdk.connection import Connection
from rota.sdk.depends_on import with_upstreams
from rota.sdk.handle import ResultTypes
from rota.sdk.registered_job import RegisteredJob
from rota.sdk.schedule_options import When, specs
from rota.sdk.store_client import StoreClient
from rota.store.opening import is_server

if TYPE_CHECKING:
    from rota.executors.process.pool import Pool
    from rota.sdk.http_client import HttpClient

log = logging.getLogger("rota.jobs")


class Registry:
    """The jobs, queues, breakers and schedules of one app."""

    def __init__(self, name: str, settings: Settings, *, has_namespace: bool = True) -> None:
        """`has_namespace`: the user has chosen it. Otherwise a server takes the namespace of the token."""
        self.name = name
        self.settings = settings
        self.jobs: dict[str, RegisteredJob] = {}
        self.workflows: dict[str, RegisteredJob] = {}
        self.builds: list[Callable[[], None]] = []
        """Each makes the graph of a workflow, or raises a WorkflowError."""
        self.queues: dict[str, Queue] = {}
        self.sources: list[Source] = []
        self._breakers: dict[str, Breaker] = {}
        self._definitions: list[Definition] = []
        self.schedules: dict[str, Spec] = {}
        self.connection = Connection(settings, name, self._declared)
        self._over_http: HttpClient | None = None
        if is_server(settings.url):
            from rota.sdk.http_client import HttpClient  # lazy: only with a server

            self._over_http = HttpClient(self.connection, name, settings.namespace if has_namespace else None)
        self.client: Client = self._over_http or StoreClient(self.connection, name)
        self.result_types = ResultTypes()
        self._completions = JobCompletions(self.connection)

    def add_job(
        self, function: Callable[..., Any], name: str | None, target: dict[str, Any], options: Mapping[str, Any]
    ) -> RegisteredJob:
        if not callable(function):
            raise DefinitionError(f"@app.job() decorates a function, not {function!r}")
        job_name = names.check(name or str(getattr(function, "__name__", "")), "a job's name")
        self._check_new(job_name)
        signature = Signature(function, job_name)
        rules = declaration.rules(options, self._named_breakers(options.get("breaker", ())))
        doc = function.__doc__ or ""
        definition = declaration.definition(job_name, signature, rules, target, options, doc)
        executor = self._executor(function, signature, target, rules)  # Unlike the definition it has literal secrets.
        when, arguments = declaration.when(options, job_name)
        given = options.get("depends_on", ())
        definition = with_upstreams(definition, given, arguments, signature, self.name, self.settings.max_payload_bytes)
        job = RegisteredJob(function, signature, definition, executor)
        wanted = self._wanted_schedules(job, when, arguments) if when else {}
        self.jobs[job_name] = job
        self.result_types[self.name, job_name] = signature.result_type
        self._definitions.append(definition)
        self.schedules |= wanted
        return job

    def add_workflow(
        self,
        function: Callable[..., Any],
        signature: Signature,
        definition: Definition,
        when: tuple[When, Mapping[str, Any]],
        depends_on: Any = (),
    ) -> RegisteredJob:
        """`definition` has no graph yet."""
        self._check_new(definition.name)
        most = self.settings.max_payload_bytes
        definition = with_upstreams(definition, depends_on, when[1], signature, self.name, most)
        executor = self._executor(function, signature, {}, Rules())  # It is never called: a claim opens a run.
        job = RegisteredJob(function, signature, definition, executor)
        wanted = self._wanted_schedules(job, *when) if when[0] else {}
        self.workflows[definition.name] = job
        self.result_types[self.name, definition.name] = signature.result_type
        self.schedules |= wanted
        return job

    def add_built(self, definition: Definition) -> None:
        """Registers the definition of a workflow once its graph is built."""
        self.workflows[definition.name].definition = definition
        self._definitions.append(definition)

    def add_breaker(self, added: Breaker) -> None:
        if added.name in self._breakers:
            raise DefinitionError(f"breaker {added.name!r} is known already: declare it once")
        self._breakers[added.name] = added
        for job in self.jobs.values():
            if added.name in job.definition.needs.breakers:  # The job was declared before its breaker.
                breakers = self._named_breakers(job.definition.needs.breakers)
                job.target.rules = msgspec.structs.replace(job.target.rules, breakers=breakers)

    def add_source(self, added: Source) -> None:
        if sources.name_of(added) in map(sources.name_of, self.sources):
            raise DefinitionError(f"app {self.name!r} has a source {sources.name_of(added)} already: declare it once")
        self.sources.append(added)

    def encode(self, job: RegisteredJob, arguments: Mapping[str, Any]) -> str:
        """Arguments by name as JSON text, if the job could be run with them."""
        return job.signature.encode((), dict(arguments), self.settings.max_payload_bytes)

    def check(self) -> None:
        """Raises DefinitionError if a workflow cannot be built, jobs depend on each other, or a name is unknown."""
        named = {name: job.definition.needs.breakers for name, job in self.jobs.items()}
        declaration.check_breakers(named, self._breakers)
        for build in self.builds:
            build()
        own = {JobRef(self.name, one.name): one.depends_on for one in self._definitions}
        dependency.check(own, {*own, *self.upstreams()}, {})

    def upstreams(self) -> set[JobRef]:
        """The jobs of other apps that jobs of this one depend on."""
        jobs = (*self.jobs.values(), *self.workflows.values())
        return {one.ref for job in jobs for one in job.definition.depends_on if one.app != self.name}

    def declare(self, *, takes_precedence: bool) -> int:
        """Registers the declarations as a deploy and returns its number."""
        self.check()
        declared = (*self._declared(), self.schedules, self.sources)
        number = self.client.declare(*declared, takes_precedence=takes_precedence)
        if any(spec.calendars for spec in self.schedules.values()):
            for name in self.client.unset_calendars(list(self.schedules.values())):
                log.warning(
                    "there is no calendar %r: no date is left out until app.calendar(%r, …) sets it", name, name
                )
        return number

    def targets(self, pool: Pool | None = None) -> dict[str, Executor]:
        """The executors of a worker, by job. Without a pool of processes all functions run in this one."""
        jobs = {name: job for name, job in self.jobs.items() if not job.target.missing}
        return {name: job.target if pool is None else job.in_worker(pool) for name, job in jobs.items()}

    def functions(self) -> dict[str, FunctionExecutor]:
        """The functions of the app, to be called in this process."""
        return {name: job.function_executor for name, job in self.jobs.items() if job.is_function}

    def names(self) -> list[str]:
        """The jobs that a worker of this machine can run, and the workflows, whose runs it can open."""
        return [*self.targets(), *self.workflows]

    def unavailable(self) -> dict[str, str]:
        """By job: what this machine lacks to run it. A worker leaves such a job to others."""
        return {name: missing for name, job in self.jobs.items() if (missing := job.target.missing)}

    def alone(self, pool: Pool) -> dict[str, Executor]:
        """How a worker runs functions that may have killed a process: each in one of its own."""
        return {name: self.jobs[name].isolated(pool) for name in self.functions()}

    def close(self) -> None:
        self._completions.close()
        if self._over_http is not None:
            self._over_http.close()
        self.connection.close()

    def _check_new(self, name: str) -> None:
        if name in self.jobs or name in self.workflows:
            kind = "job" if name in self.jobs else "workflow"
            raise DefinitionError(f"app {self.name!r} already has a {kind} {name!r}: pass name= to one of them")

    def _declared(self) -> tuple[list[Definition], list[Queue]]:
        return self._definitions, list(self.queues.values())

    def _named_breakers(self, named: str | Sequence[str]) -> tuple[Breaker, ...]:
        listed = sorted({names.check(name, "a breaker's name") for name in declaration.name_list(named, "breaker")})
        # A breaker may be declared after its jobs; `check` runs before a worker starts.
        return tuple(
            self._breakers.get(name) or breaker.breaker(name, DEFAULT_FAILURES, DEFAULT_WAIT) for name in listed
        )

    def _executor(
        self, function: Callable[..., Any], signature: Signature, target: Mapping[str, Any], rules: Rules
    ) -> Executor:
        if target.get("kind", kinds.PROCESS) != kinds.PROCESS:
            return kinds.executor(target, rules, self.settings.max_result_bytes)
        return FunctionExecutor(function, signature, rules, self.settings.max_result_bytes, self._completions)

    def _wanted_schedules(self, job: RegisteredJob, when: When, arguments: Mapping[str, Any]) -> dict[str, Spec]:
        """By name: the first has the name of the job, each further one also a number."""
        try:
            encoded = self.encode(job, arguments)
        except ArgumentsError as error:
            raise DefinitionError(
                f"job {job.name!r} runs by itself, so arguments= must be what it takes: {error}"
            ) from None
        found = specs(job.definition, self.name, when, encoded)
        wanted = {job.name if number == 1 else f"{job.name}:{number}": spec for number, spec in enumerate(found, 1)}
        if taken := sorted(wanted.keys() & self.schedules.keys()):
            raise DefinitionError(f"app {self.name!r} already has a schedule {taken[0]!r}: give the job name=")
        return wanted
