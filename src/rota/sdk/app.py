"""An app: a named set of jobs on one database."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from datetime import date
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

import msgspec

from rota import config
from rota.domain import names, rank, retry
from rota.domain.duration import Duration, positive_seconds
from rota.domain.errors import DefinitionError, UnknownJob
from rota.domain.job import Definition, Queue
from rota.domain.lifecycle import Rules
from rota.domain.retry import Policy
from rota.domain.schedule import Spec
from rota.executors.context import Context
from rota.executors.function import FunctionTarget
from rota.executors.signature import Signature
from rota.ops import schedule
from rota.sdk.completion import JobCompletions
from rota.sdk.connection import Connection
from rota.sdk.dead import DeadLetters
from rota.sdk.handle import Handle
from rota.sdk.job import Job, is_async
from rota.sdk.schedule import Schedule
from rota.sdk.when import When, specs
from rota.store import timetable
from rota.store.postgres_url import shown

P = ParamSpec("P")
T = TypeVar("T")
Retry = Policy | int | bool | Callable[[int, BaseException], Duration | None] | None
DEFAULT_TIMEOUT = "1h"


class Decorator(Protocol):
    """What `@app.job(…)` is: keeps the function's parameters and result visible to type checkers."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]]
    ) -> Job[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], T]) -> Job[P, T, T]: ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]]) -> Job[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def __call__(self, function: Callable[P, T]) -> Job[P, T, T]: ...

    def __call__(self, function: Any) -> Any: ...


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
        self._definitions: list[Definition] = []
        self._schedules: dict[str, Spec] = {}
        self.connection = Connection(self.settings, self.name, self._declared)
        self.dead = DeadLetters(self.connection)
        self._completions = JobCompletions(self.connection)

    def __repr__(self) -> str:
        return f"App({self.name!r}, url={shown(self.settings.url)!r})"

    @overload
    def job(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]], /
    ) -> Job[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def job(self, function: Callable[Concatenate[Context, P], T], /) -> Job[P, T, T]: ...

    @overload
    def job(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> Job[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def job(self, function: Callable[P, T], /) -> Job[P, T, T]: ...

    @overload
    def job(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int | str = "normal",
        retry: Retry = True,
        timeout: Duration | None = DEFAULT_TIMEOUT,
        total_timeout: Duration | None = None,
        start_within: Duration | None = None,
        **when: Unpack[When],
    ) -> Decorator: ...

    def job(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int | str = "normal",
        retry: Retry = True,
        timeout: Duration | None = DEFAULT_TIMEOUT,
        total_timeout: Duration | None = None,
        start_within: Duration | None = None,
        **when: Unpack[When],
    ) -> Any:
        """Makes a job of a function, sync or async.

        `retry` is a policy such as `Exponential(attempts=5)`, a number of attempts, a callable, or None for no retry;
        the default tries five times. `timeout` bounds one attempt, `total_timeout` all of them together, and
        an execution that has not started `start_within` the time at which it was due is skipped.

        With `cron=`, `every=`, `after=` or `at=` the job also runs by itself; see docs/schedules.md for the rest.
        """

        def declare(function: Callable[..., Any]) -> Any:
            job = self._declare(function, name, queue, priority, retry, timeout, total_timeout, start_within)
            if when:
                self._declare_schedules(job, when)
            return job

        return declare if function is None else declare(function)

    def queue(self, name: str, *, policy: str = "priority", max_depth: int | None = None) -> None:
        """Declares how a queue orders its work ("priority" or "fifo") and how much of it may wait."""
        if policy not in rank.Policy.__members__.values():
            choices = ", ".join(member.value for member in rank.Policy)
            raise DefinitionError(f"queue {name!r}: policy must be one of {choices}, not {policy!r}")
        if max_depth is not None and not (isinstance(max_depth, int) and max_depth > 0):
            raise DefinitionError(f"queue {name!r}: max_depth must be a positive number, not {max_depth!r}")
        names.check(name, "a queue's name")
        self._queues[name] = Queue(name=name, policy=rank.Policy(policy), max_depth=max_depth)

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
        """Makes a schedule at run time, or changes the one of that name: within a second, on every node.

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
        found = specs(definition, self.name, when, known.encode(arguments or {}))
        if len(found) != 1:
            raise DefinitionError(
                "cron: a schedule that is made at run time has one expression; make several schedules"
            )
        store = self.connection.store()
        store.transact(schedule.put, self.settings.namespace, self.name, named, found[0], "sdk")
        return Schedule(self.connection, self.name, named)

    def unschedule(self, name: str) -> bool:
        """Removes a schedule that was made at run time; False if there is none."""
        return Schedule(self.connection, self.name, name).remove()

    def schedules(self) -> list[Schedule]:
        """Every schedule of the app, declared or made at run time."""
        rows = self.connection.store().read(timetable.schedules, self.settings.namespace, self.name)
        return [Schedule(self.connection, self.name, row.name) for row in rows]

    def calendar(self, name: str, days: Iterable[date | str]) -> None:
        """Sets a named set of dates, such as public holidays, that schedules may leave out by `calendars=[name]`."""
        texts = [day if isinstance(day, str) else day.isoformat() for day in days]
        names.check(name, "a calendar's name")
        self.connection.store().transact(schedule.set_calendar, self.settings.namespace, name, texts, "sdk")

    def declare_schedules(self) -> list[str]:
        """Makes the declared schedules in the database those that the code has; a worker does so when it starts."""
        store = self.connection.store()
        return store.transact(schedule.declare, self.settings.namespace, self.name, list(self._schedules.items()))

    def handle(self, id: str) -> Handle[Any]:
        """A handle on an execution whose id is known."""
        return Handle(self.connection, id)

    def targets(self) -> dict[str, FunctionTarget]:
        """What a worker of this app can run, by name."""
        return {name: job.target for name, job in self.jobs.items()}

    def close(self) -> None:
        """Closes the database; the next use opens it again."""
        self._completions.close()
        self.connection.close()

    def _declare_schedules(self, job: Job[..., Any, Any], when: When) -> None:
        for number, spec in enumerate(specs(job.definition, self.name, when, job.encode({})), start=1):
            self._schedules[job.name if number == 1 else f"{job.name}:{number}"] = spec

    def _declared(self) -> tuple[list[Definition], list[Queue]]:
        return self._definitions, list(self._queues.values())

    def _declare(
        self,
        function: Callable[..., Any],
        name: str | None,
        queue: str,
        priority: int | str,
        retry_value: Retry,
        timeout: Duration | None,
        total_timeout: Duration | None,
        start_within: Duration | None,
    ) -> Job[..., Any, Any]:
        if not callable(function):
            raise DefinitionError(f"@app.job() decorates a function, not {function!r}")
        job_name = names.check(name or str(getattr(function, "__name__", "")), "a job's name")
        if job_name in self.jobs:
            raise DefinitionError(f"app {self.name!r} already has a job {job_name!r}: give one of them name=")
        signature = Signature(function, job_name)
        rules = Rules(
            retry=retry.policy(retry_value),
            timeout_s=None if timeout is None else positive_seconds(timeout, "timeout"),
            total_timeout_s=None if total_timeout is None else positive_seconds(total_timeout, "total_timeout"),
        )
        definition = Definition(
            name=job_name,
            queue=names.check(queue, "a queue's name"),
            priority=rank.level(priority),
            retry=rules.retry.describe(),
            timeout_s=rules.timeout_s,
            total_timeout_s=rules.total_timeout_s,
            start_within_s=None if start_within is None else positive_seconds(start_within, "start_within"),
            parameters=signature.parameters(),
            description=(function.__doc__ or "").strip().split("\n")[0],
        )
        target = FunctionTarget(
            function,
            signature,
            rules,
            is_async=is_async(function),
            most_result_bytes=self.settings.max_payload_bytes,
            completions=self._completions,
        )
        job: Job[..., Any, Any] = Job(function, signature, definition, target, self.connection, self.name)
        self.jobs[job_name] = job
        self._definitions.append(definition)
        return job
