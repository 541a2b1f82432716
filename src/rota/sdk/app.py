"""An app: a named set of jobs on one database."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

import msgspec

from rota import config
from rota.domain import breaker, names, rank, source
from rota.domain.breaker import DEFAULT_FAILURES, DEFAULT_WAIT
from rota.domain.duration import Duration
from rota.domain.errors import DefinitionError, UnknownJob
from rota.domain.job import Queue
from rota.domain.url import masked
from rota.executors.context import Context
from rota.ops import calendars
from rota.sdk import declaration, targets
from rota.sdk.dead_letters import DeadLetters
from rota.sdk.declaration import FunctionOptions
from rota.sdk.emitter import Emitter, within
from rota.sdk.event_handle import EventHandle
from rota.sdk.handle import Handle, handle_on
from rota.sdk.job import Job, registered
from rota.sdk.registry import Registry
from rota.sdk.schedule_handle import ScheduleHandle
from rota.sdk.schedule_options import When, dates, specs
from rota.sdk.stand_in import stand_in
from rota.sdk.workflow import declaring
from rota.sdk.workflow.declaring import Declared, WorkflowDecorator
from rota.sdk.workflow.workflow import Workflow

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

    `url` may also be that of a server, such as `https://rota.example.org`, with a `token` (ROTA_TOKEN). Then the app
    can enqueue, wait and operate, but has no workers, no `within` and no `ctx.transaction`; see docs/http.md.
    """

    def __init__(
        self, name: str, *, url: str | None = None, namespace: str | None = None, token: str | None = None
    ) -> None:
        self.name = names.check(name, "an app's name")
        settings = config.load(url=url, namespace=namespace, token=token)
        has_namespace = namespace is not None or config.is_given("namespace")
        self._registry = Registry(self.name, settings, has_namespace=has_namespace)
        self._client = self._registry.client
        self._jobs: dict[str, Job[..., Any, Any]] = {}
        self._workflows: dict[str, Workflow[..., Any]] = {}
        self._emitter = Emitter(self._client)
        self.dead = DeadLetters(self._client, self._registry.result_types)

    def __repr__(self) -> str:
        return f"App({self.name!r}, url={masked(self._registry.settings.url)!r})"

    @property
    def jobs(self) -> Mapping[str, Job[..., Any, Any]]:
        """The jobs by name; read-only."""
        return MappingProxyType(self._jobs)

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
        both, each tick waits for them. With `on="order.paid"` events start it; see docs/events.md.
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
        function, target = targets.command(name, argv, about)
        return self._add(function, name, target, about)

    def http(self, name: str, url: str, /, **about: Any) -> Job[..., Any, Any]:
        """Makes a job of an HTTP request: `app.http("settle", "https://example.com/orders/{order}")`.

        A name in braces is an argument of the job. The `method=` is POST unless you say otherwise, and without `body=`
        the arguments themselves are sent, as JSON. `about` has the options of a job and those of a request:
        `headers=`, `query=` (texts, or references such as `{"env": "TOKEN"}`), `body=`, `success=`, `retry_codes=`,
        `result=`, `secret=` (the name of an environment variable with the key to sign with), `allow=` and others:
        docs/execution.md has them all.
        """
        function, target = targets.http(name, url, about)
        return self._add(function, name, target, about)

    def run_by(
        self, kind: str, name: str, /, parameters: Sequence[str] | None = None, **about: Any
    ) -> Job[..., Any, Any]:
        """Makes a job that an installed executor runs: one that an entry point in the group `rota.executors` names.

        `target=` is the data for that executor; `parameters` are the names of the job's arguments, or None for any.
        """
        target = {"kind": kind, **declaration.by_name(about.pop("target", None), "target", "{'image': 'small'}")}
        takes = dict.fromkeys(declaration.name_list(parameters or (), "parameters"), Any)
        function = stand_in(name, takes, f"run by {kind}", takes_others=parameters is None)
        return self._add(function, name, target, about)

    @property
    def workflows(self) -> Mapping[str, Workflow[..., Any]]:
        """The workflows by name; read-only."""
        return MappingProxyType(self._workflows)

    @property
    def workflow(self) -> WorkflowDecorator:
        """Makes a workflow of a function, which says by `job.step(…)` which steps a run has; see docs/workflows.md.

        Its `name` is the function's. `timeout` bounds a whole run. `on_failure="stop"` cancels the other steps when one
        has failed; by default they end. `undo_on` says which ends of a run undo its steps. `priority` is that of its
        runs. Runs of workflows can be steps of others, down to `max_nesting` levels; a map has at most `max_width`
        items. With `cron=`, `every=`, `after=` or `at=` a run starts by itself, with `arguments`; with
        `on="order.paid"` an event starts one.
        """
        return self._workflow

    def workflow_from(self, data: Mapping[str, Any] | str) -> Workflow[..., Any]:
        """Makes a workflow of data: what `workflow.to_data()` returns, or a text of JSON or YAML."""
        return self._add_workflow(declaring.from_data(data))

    def queue(self, name: str, *, policy: str = "priority", max_depth: int | None = None) -> None:
        """Declares how a queue orders its work ("priority" or "fifo") and how much of it may wait."""
        if policy not in rank.Policy.__members__.values():
            choices = ", ".join(member.value for member in rank.Policy)
            raise DefinitionError(f"queue {name!r}: policy must be one of {choices}, not {policy!r}")
        if max_depth is not None and (isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth <= 0):
            raise DefinitionError(f"queue {name!r}: max_depth must be a positive number, not {max_depth!r}")
        names.check(name, "a queue's name")
        self._registry.queues[name] = Queue(name=name, policy=rank.Policy(policy), max_depth=max_depth)

    def breaker(self, name: str, *, failures: int = DEFAULT_FAILURES, wait: Duration = DEFAULT_WAIT) -> None:
        """Declares a circuit breaker for something that jobs rely on, such as the API of a bank.

        After `failures` failed attempts in a row of jobs with `breaker=name`, none of them starts for `wait`. Then one
        execution starts as a probe.
        """
        self._registry.add_breaker(breaker.breaker(name, failures, wait))

    def schedule(
        self,
        job: Job[..., Any, Any] | Workflow[..., Any] | str,
        /,
        *,
        name: str | None = None,
        arguments: dict[str, Any] | None = None,
        priority: int | str | None = None,
        queue: str | None = None,
        **when: Unpack[When],
    ) -> ScheduleHandle:
        """Makes a schedule at run time, or changes the one of that name.

        All workers follow it at once, or after `poll_s` if a wake-up was lost.

        `when` is what `@app.job(…)` takes: one of `cron=`, `every=`, `after=` and `at=`, and more.
        """
        known = self._schedulable(job)
        definition = registered(known).definition
        if priority is not None:
            definition = msgspec.structs.replace(definition, priority=rank.level(priority))
        if queue is not None:
            definition = msgspec.structs.replace(definition, queue=names.check(queue, "a queue's name"))
        named = names.check(name or definition.name, "a schedule's name")
        given = declaration.by_name(arguments, "arguments", "{'month': 'last'}")
        found = specs(definition, self.name, when, self._registry.encode(registered(known), given))
        if len(found) != 1:
            raise DefinitionError(
                "a schedule that is made at run time has one trigger and one expression; make several schedules"
            )
        self._client.put_schedule(named, found[0])
        return ScheduleHandle(self._client, named)

    def unschedule(self, name: str) -> bool:
        """Removes a schedule that was made at run time; False if there is none."""
        return self._client.remove_schedule(name)

    def schedules(self) -> list[ScheduleHandle]:
        """Every schedule of the app, declared or made at run time."""
        return [ScheduleHandle(self._client, name) for name in self._client.schedule_names()]

    def calendar(self, name: str, days: Iterable[date | str]) -> None:
        """Sets a named set of dates, such as public holidays, that schedules may leave out by `calendars=[name]`."""
        names.check(name, "a calendar's name")
        texts = dates(days, "days", calendars.MOST_DAYS)
        self._client.set_calendar(name, texts)

    def emit(
        self, name: str, payload: Any = None, *, subject: str | None = None, key: str | None = None
    ) -> EventHandle:
        """Emits an event: starts the jobs and workflows with `on=name`, and wakes steps that wait for it.

        When this returns, the event is committed. `payload` is anything that JSON can carry. `subject` says what the
        event is about, such as the id of an order: steps can wait for one subject. `key` is an idempotency key: if an
        event with this name has it already, that event is returned and nothing is emitted.
        """
        return self._emitter.emit(name, payload, subject=subject, key=key)

    async def aemit(
        self, name: str, payload: Any = None, *, subject: str | None = None, key: str | None = None
    ) -> EventHandle:
        """`emit`, without blocking the event loop."""
        return await self._emitter.aemit(name, payload, subject=subject, key=key)

    def emit_many(self, calls: Iterable[str | Mapping[str, Any]]) -> list[EventHandle]:
        """Emits all events or none, in one transaction. Each call is a name, or a dict with the arguments of `emit`."""
        return self._emitter.emit_many(calls)

    def within(self, connection: Any, *, notify: bool = False) -> Emitter:
        """Emits events in the transaction of `connection`: if it is rolled back, they were never emitted.

        The connection is one that `job.within` takes, or that of `ctx.transaction()`. A worker delivers the events
        after the commit: immediately with `notify`, otherwise within a second.
        """
        return within(self._client, connection, notify)

    def watch(
        self,
        folder: str | PathLike[str],
        name: str,
        *,
        pattern: str = "*",
        settle: Duration = "5s",
        every: Duration = "2s",
        recursive: bool = False,
    ) -> None:
        """Emits an event `name` for each new or changed file in a folder, while a worker of the app runs.

        The event of a file is emitted once its size and modification time have stayed the same for `settle`. The
        payload has its `path`, its `name` below the folder, its `size` and `modified_at`. Several workers that watch
        the folder emit one event for each version of a file. The folder is listed every `every`: see docs/events.md.
        """
        path = fspath(folder)
        self._registry.add_source(source.folder(path, name, pattern, settle, every, is_recursive=recursive))

    def outbox(self, table: str, *, every: Duration = "1s") -> None:
        """Emits an event for each row of a table that you have in the app's database, and deletes the row.

        See docs/events.md for the columns of the table.
        """
        self._registry.add_source(source.outbox(table, every))

    def check(self) -> None:
        """Raises DefinitionError if a workflow cannot be built, jobs depend on each other, or a name is not declared.

        Call it after all declarations. Jobs of other apps are checked when the app is declared.
        """
        self._registry.check()

    def declare(self, *, takes_precedence: bool = False) -> int:
        """Registers the declarations of the code as a deploy and returns its number; a worker does so when it starts.

        The deploy is in force once a worker has joined with that number, unless another one has precedence.
        """
        return self._registry.declare(takes_precedence=takes_precedence)

    def handle(self, id: str) -> Handle[Any]:
        """A handle on an execution whose id is known. Its result is decoded as that of its job, if the app has it."""
        return handle_on(self._client, id, self._registry.result_types)

    def close(self) -> None:
        """Closes the database; the next use opens it again."""
        self._registry.close()

    def _job(self, function: Any = None, /, **about: Any) -> Any:
        isolated = (about.pop("isolation", None), about.pop("memory", None), about.pop("grace", None))
        target = declaration.isolated(*isolated)
        declare = partial(self._add, name=about.pop("name", None), target=target, options=about)
        return declare if function is None else declare(function)

    def _add(
        self, function: Callable[..., Any], name: str | None, target: dict[str, Any], options: Mapping[str, Any]
    ) -> Job[..., Any, Any]:
        added = self._registry.add_job(function, name, target, options)
        job: Job[..., Any, Any] = Job(added, self._client, self.name)
        self._jobs[added.name] = job
        return job

    def _schedulable(self, job: Job[..., Any, Any] | Workflow[..., Any] | str) -> Job[..., Any, Any]:
        known = (self._jobs.get(job) or self._workflows.get(job)) if isinstance(job, str) else job
        if known is None:
            raise UnknownJob(f"app {self.name!r} has no job {job!r}")
        if isinstance(known, Workflow):
            known.check()  # The schedule needs its definition in the database.
            return known._job
        return known

    def _workflow(self, function: Any = None, /, **about: Any) -> Any:
        def declare(function: Callable[..., Any]) -> Workflow[..., Any]:
            return self._add_workflow(declaring.from_function(self.name, function, about))

        return declare if function is None else declare(function)

    def _add_workflow(self, declared: Declared) -> Workflow[..., Any]:
        when = (declared.when, declared.arguments)
        of = (declared.function, declared.signature, declared.definition)
        added = self._registry.add_workflow(*of, when, declared.depends_on)
        job: Job[..., Any, Any] = Job(added, self._client, self.name)
        workflow: Workflow[..., Any] = Workflow(job, declared.source, self, self._registry.add_built)
        self._registry.builds.append(workflow.check)
        self._workflows[added.name] = workflow
        return workflow


def registry_of(app: App) -> Registry:
    """For the engine, the commands and the harness."""
    return app._registry
