"""An app: a named set of jobs on one database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

import msgspec

from rota import config
from rota.domain import breaker, dependency, names, rank
from rota.domain.breaker import DEFAULT_FAILURES, DEFAULT_WAIT, Breaker
from rota.domain.dependency import JobRef
from rota.domain.duration import Duration
from rota.domain.errors import ArgumentsError, DefinitionError, UnknownJob
from rota.domain.job import Definition, Queue
from rota.domain.lifecycle import Rules
from rota.domain.schedule import Spec
from rota.domain.url import masked
from rota.executors import kinds
from rota.executors.context import Context
from rota.executors.function import FunctionExecutor
from rota.executors.port import Executor
from rota.executors.signature import Signature
from rota.ops import schedule
from rota.sdk import declaration
from rota.sdk.client import Client
from rota.sdk.completion import JobCompletions
from rota.sdk.connection import Connection
from rota.sdk.dead_letters import DeadLetters
from rota.sdk.declaration import FunctionOptions
from rota.sdk.depends_on import with_upstreams
from rota.sdk.handle import Handle
from rota.sdk.job import Job
from rota.sdk.schedule import Schedule
from rota.sdk.stand_in import Plain, stand_in
from rota.sdk.store_client import StoreClient
from rota.sdk.when import When, dates, specs

if TYPE_CHECKING:
    from rota.executors.process.pool import Pool

log = logging.getLogger("rota.jobs")
P = ParamSpec("P")
T = TypeVar("T")


class Decorator(Protocol):
    """The type of `@app.job` and `@app.job(…)`: shows the function's parameters and result to type checkers."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]], /
    ) -> Job[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], T], /) -> Job[P, T, T]: ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> Job[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def __call__(self, function: Callable[P, T], /) -> Job[P, T, T]: ...

    @overload
    def __call__(self, function: None = None, /, **options: Unpack[FunctionOptions]) -> Decorator: ...

    def __call__(self, function: Any = None, /, **options: Any) -> Any: ...


class App:
    """Holds the jobs; workers of an app claim only its jobs.

    `url` defaults to ROTA_URL, or else to `sqlite:///rota.db` in the current folder. Nothing is opened before it is
    needed, so an app may be made at import time and used after a fork.
    """

    def __init__(self, name: str, *, url: str | None = None, namespace: str | None = None) -> None:
        self.name = names.check(name, "an app's name")
        self.settings = config.load(url=url, namespace=namespace)
        self.jobs: dict[str, Job[..., Any, Any]] = {}
        self._queues: dict[str, Queue] = {}
        self._breakers: dict[str, Breaker] = {}
        self._definitions: list[Definition] = []
        self._schedules: dict[str, Spec] = {}
        self.connection = Connection(self.settings, self.name, self._declared)
        self.client: Client = StoreClient(self.connection, self.name)
        self.dead = DeadLetters(self.client)
        self._completions = JobCompletions(self.connection)

    def __repr__(self) -> str:
        return f"App({self.name!r}, url={masked(self.settings.url)!r})"

    @property
    def job(self) -> Decorator:
        """Makes a job of a function, sync or async. Its `name` is the function's, its `queue` is `default`.

        `retry` is a policy such as `Exponential(attempts=5)`, a number of attempts, a callable, or None for no retry;
        the default tries five times. `timeout` bounds one attempt (by default an hour), `total_timeout` all of them,
        `progress_timeout` the time in which an attempt does not call `ctx.progress`, and an execution that has not
        started `start_within` the time at which it was due is skipped. A job that has used up its `time_slice` stops at
        its next checkpoint and returns to the queue.

        `isolation="process"` runs it in a process of its own, which can be killed: `memory` limits that process, and
        `grace` is the time between SIGTERM and SIGKILL.

        Only workers of its `pool` take it that have every tag in `requires` and enough of its `resources`, such as
        `{"gpu": 1}`. After `pause_after` failed executions in a row the job is paused, until it is resumed.

        No execution starts while its `breaker` is open: see `App.breaker`. With `affinity="customer"` an execution
        prefers the worker that last ran one with the same value of that argument, and waits for it for `affinity_wait`
        at most.

        With `cron=`, `every=`, `after=` or `at=` the job also runs by itself, with `arguments` if it needs any; see
        docs/schedules.md for the rest. With `depends_on=["extract"]` it starts after the success of other jobs; with
        both, each tick waits for them.
        """
        return self._job

    def command(self, name: str, argv: Sequence[str], /, **about: Any) -> Job[..., Any, Any]:
        """Makes a job of a command: `app.command("report", ["python", "report.py", "{month}"])`.

        `{month}` is an argument of the job, and becomes one argument of the command, never words for a shell; an
        element `"{files*}"` takes a list and becomes one argument per item. `about` has the options of a job
        (`queue=`, `timeout=`, `cron=` and so on) and those of a command: `environment=`, `inherits=` (names of
        variables that it gets from the worker), `directory=`, `success=`, `retry_codes=`, `permanent=` (exit codes),
        `memory=`, `grace=`, and `result=` ("none", "json" or "text": what its standard output is to be). A secret is
        given as `{"env": "TOKEN"}` or `{"file": "/run/secrets/token"}`, in place of a variable or an element.
        """
        from rota.executors.process.command import Command, lists, parameters  # lazy: few apps have commands

        given = {"argv": declaration.words(argv, name)}
        command = declaration.executor_data(about, Command, given, name, "a command")
        takes = {one: list[Plain] if one in lists(command) else Plain for one in parameters(command)}
        function = stand_in(name, takes, "a command")
        return self._declare(function, name, {"kind": kinds.COMMAND, **msgspec.to_builtins(command)}, about)

    def http(self, name: str, url: str, /, **about: Any) -> Job[..., Any, Any]:
        """Makes a job of an HTTP request: `app.http("settle", "https://example.com/orders/{order}")`.

        A name in braces is an argument of the job. The `method=` is POST unless you say otherwise, and without `body=`
        the arguments themselves are sent, as JSON. `about` has the options of a job and those of a request:
        `headers=`, `query=` (texts, or references such as `{"env": "TOKEN"}`), `body=`, `success=`, `retry_codes=`,
        `result=`, `secret=` (the name of an environment variable with the key to sign with), `allow=` and others:
        docs/execution.md has them all.
        """
        from rota.executors.http.request import Request, parameters, values  # lazy: needs an extra

        request = declaration.executor_data(about, Request, {"url": url}, name, "a request")
        takes = {one: Any if one in values(request) else Plain for one in parameters(request)}
        sends_all = request.body == "arguments" and request.method not in ("GET", "HEAD", "DELETE")
        function = stand_in(name, takes, "an HTTP request", takes_others=sends_all)
        return self._declare(function, name, {"kind": kinds.HTTP, **msgspec.to_builtins(request)}, about)

    def run_by(
        self, kind: str, name: str, /, parameters: Sequence[str] | None = None, **about: Any
    ) -> Job[..., Any, Any]:
        """Makes a job that an installed executor runs: one that an entry point in the group `rota.executors` names.

        `target=` is the data for that executor; `parameters` are the names of the job's arguments, or None for any.
        """
        target = {"kind": kind, **declaration.by_name(about.pop("target", None), "target", "{'image': 'small'}")}
        takes = dict.fromkeys(declaration.name_list(parameters or (), "parameters"), Any)
        function = stand_in(name, takes, f"run by {kind}", takes_others=parameters is None)
        return self._declare(function, name, target, about)

    def queue(self, name: str, *, policy: str = "priority", max_depth: int | None = None) -> None:
        """Declares how a queue orders its work ("priority" or "fifo") and how much of it may wait."""
        if policy not in rank.Policy.__members__.values():
            choices = ", ".join(member.value for member in rank.Policy)
            raise DefinitionError(f"queue {name!r}: policy must be one of {choices}, not {policy!r}")
        if max_depth is not None and (isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth <= 0):
            raise DefinitionError(f"queue {name!r}: max_depth must be a positive number, not {max_depth!r}")
        names.check(name, "a queue's name")
        self._queues[name] = Queue(name=name, policy=rank.Policy(policy), max_depth=max_depth)

    def breaker(self, name: str, *, failures: int = DEFAULT_FAILURES, wait: Duration = DEFAULT_WAIT) -> None:
        """Declares a circuit breaker for something that jobs rely on, such as the API of a bank.

        After so many `failures` in a row of jobs with `breaker=name`, none of them starts for `wait`. Then one tries.
        """
        if name in self._breakers:
            raise DefinitionError(f"breaker {name!r} is known already: declare it once")
        self._breakers[name] = breaker.breaker(name, failures, wait)
        for job in self.jobs.values():
            if name in job.definition.needs.breakers:  # The job was declared before its breaker.
                breakers = self._named_breakers(job.definition.needs.breakers)
                job.target.rules = msgspec.structs.replace(job.target.rules, breakers=breakers)

    def schedule(
        self,
        job: Job[..., Any, Any] | str,
        /,
        *,
        name: str | None = None,
        arguments: dict[str, Any] | None = None,
        priority: int | str | None = None,
        queue: str | None = None,
        **when: Unpack[When],
    ) -> Schedule:
        """Makes a schedule at run time, or changes the one of that name.

        All nodes follow it at once, or after `poll_s` if a wake-up was lost.

        `when` is what `@app.job(…)` takes: one of `cron=`, `every=`, `after=` and `at=`, and more.
        """
        known = job if isinstance(job, Job) else self.jobs.get(job)
        if known is None:
            raise UnknownJob(f"app {self.name!r} has no job {job!r}")
        definition = known.definition
        if priority is not None:
            definition = msgspec.structs.replace(definition, priority=rank.level(priority))
        if queue is not None:
            definition = msgspec.structs.replace(definition, queue=names.check(queue, "a queue's name"))
        named = names.check(name or definition.name, "a schedule's name")
        given = declaration.by_name(arguments, "arguments", "{'month': 'last'}")
        found = specs(definition, self.name, when, known.encode(dict(given)))
        if len(found) != 1:
            raise DefinitionError(
                "a schedule that is made at run time has one trigger and one expression; make several schedules"
            )
        self.client.put_schedule(named, found[0])
        return Schedule(self.client, named)

    def unschedule(self, name: str) -> bool:
        """Removes a schedule that was made at run time; False if there is none."""
        return self.client.remove_schedule(name)

    def schedules(self) -> list[Schedule]:
        """Every schedule of the app, declared or made at run time."""
        return [Schedule(self.client, row.name) for row in self.client.schedules()]

    def calendar(self, name: str, days: Iterable[date | str]) -> None:
        """Sets a named set of dates, such as public holidays, that schedules may leave out by `calendars=[name]`."""
        names.check(name, "a calendar's name")
        texts = dates(days, "days", schedule.MOST_DAYS)
        self.client.set_calendar(name, texts)

    def check(self) -> None:
        """Raises DefinitionError if a job names a breaker or depends on a job that is not declared, or on itself.

        Call it after all declarations. Jobs of other apps are checked when the app is declared.
        """
        named = {name: job.definition.needs.breakers for name, job in self.jobs.items()}
        declaration.check_breakers(named, self._breakers)
        own = {JobRef(self.name, one.name): one.depends_on for one in self._definitions}
        foreign = {one.ref for upstreams in own.values() for one in upstreams if one.app != self.name}
        dependency.check(own, {*own, *foreign}, {})

    def declare(self, *, takes_precedence: bool = False) -> int:
        """Registers the declarations of the code as a deploy and returns its number; a worker does so when it starts.

        The deploy is in force once a worker has joined with that number, unless another one has precedence.
        """
        self.check()
        number = self.client.declare(*self._declared(), self._schedules, takes_precedence=takes_precedence)
        if any(spec.calendars for spec in self._schedules.values()):
            for name in self.client.unset_calendars(list(self._schedules.values())):
                log.warning(
                    "there is no calendar %r: no date is left out until app.calendar(%r, …) sets it", name, name
                )
        return number

    def handle(self, id: str) -> Handle[Any]:
        """A handle on an execution whose id is known."""
        if not isinstance(id, str):
            raise DefinitionError(f"the id of an execution is a text, not {id!r}")
        return Handle(self.client, id)

    def targets(self, pool: Pool | None = None) -> dict[str, Executor]:
        """The executors of a worker, by job. Without a pool of processes all functions run in this one."""
        jobs = {name: job for name, job in self.jobs.items() if not job.target.missing}
        return {name: job.target if pool is None else _in_process(job, pool) for name, job in jobs.items()}

    def functions(self) -> dict[str, FunctionExecutor]:
        """The functions of this app, to be called in this process."""
        return {name: job.function_executor for name, job in self.jobs.items() if job.is_function}

    def unavailable(self) -> dict[str, str]:
        """By job: what this machine lacks to run it. A worker leaves such a job to others."""
        return {name: missing for name, job in self.jobs.items() if (missing := job.target.missing)}

    def alone(self, pool: Pool) -> dict[str, Executor]:
        """How a worker runs functions that may have killed a process: each in one of its own."""
        return {name: _isolated(self.jobs[name], pool) for name in self.functions()}

    def close(self) -> None:
        """Closes the database; the next use opens it again."""
        self._completions.close()
        self.connection.close()

    def _job(self, function: Any = None, /, **about: Any) -> Any:
        isolated = (about.pop("isolation", None), about.pop("memory", None), about.pop("grace", None))
        target = declaration.isolated(*isolated)
        declare = partial(self._declare, name=about.pop("name", None), target=target, options=about)
        return declare if function is None else declare(function)

    def _wanted_schedules(self, job: Job[..., Any, Any], when: When, arguments: Mapping[str, Any]) -> dict[str, Spec]:
        """By name: the first has the name of the job, each further one also a number."""
        try:
            encoded = job.encode(dict(arguments))
        except ArgumentsError as error:
            raise DefinitionError(
                f"job {job.name!r} runs by itself, so arguments= must be what it takes: {error}"
            ) from None
        found = specs(job.definition, self.name, when, encoded)
        wanted = {job.name if number == 1 else f"{job.name}:{number}": spec for number, spec in enumerate(found, 1)}
        if taken := sorted(wanted.keys() & self._schedules.keys()):
            raise DefinitionError(f"app {self.name!r} already has a schedule {taken[0]!r}: give the job name=")
        return wanted

    def _declared(self) -> tuple[list[Definition], list[Queue]]:
        return self._definitions, list(self._queues.values())

    def _declare(
        self, function: Callable[..., Any], name: str | None, target: dict[str, Any], options: Mapping[str, Any]
    ) -> Job[..., Any, Any]:
        if not callable(function):
            raise DefinitionError(f"@app.job() decorates a function, not {function!r}")
        job_name = names.check(name or str(getattr(function, "__name__", "")), "a job's name")
        if job_name in self.jobs:
            raise DefinitionError(f"app {self.name!r} already has a job {job_name!r}: pass name= to one of them")
        signature = Signature(function, job_name)
        rules = declaration.rules(options, self._named_breakers(options.get("breaker", ())))
        doc = function.__doc__ or ""
        definition = declaration.definition(job_name, signature, rules, target, options, doc)
        executor = self._executor(function, signature, target, rules)  # Unlike the definition it has literal secrets.
        when, arguments = declaration.when(options, job_name)
        most = self.settings.max_payload_bytes
        given = options.get("depends_on", ())
        definition = with_upstreams(definition, given, arguments, signature, self.name, most)
        job: Job[..., Any, Any] = Job(function, signature, definition, executor, self.client, self.name)
        wanted = self._wanted_schedules(job, when, arguments) if when else {}
        self.jobs[job_name] = job
        self._definitions.append(definition)
        self._schedules |= wanted
        return job

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
            return kinds.executor(target, rules)
        return FunctionExecutor(function, signature, rules, self.settings.max_payload_bytes, self._completions)


def _in_process(job: Job[..., Any, Any], pool: Pool) -> Executor:
    return _isolated(job, pool) if job.definition.target.get("kind") == kinds.PROCESS else job.target


def _isolated(job: Job[..., Any, Any], pool: Pool) -> Executor:
    """In a process of its own, whether it asks for that or not, and with the limits that it has if it does."""
    from rota.executors.process.pool import ProcessExecutor  # lazy: only in a worker
    from rota.executors.process.warm_process import GRACE_S  # lazy: only in a worker

    target = job.definition.target
    memory, grace_s = target.get("memory_bytes"), target.get("grace_s", GRACE_S)
    return ProcessExecutor(pool, job.target.rules, memory_bytes=memory, grace_s=grace_s)
