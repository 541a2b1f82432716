"""Checks the body of a request that defines a job, and turns it into the definition that workers run, with its
dependencies and schedules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from rota import ids
from rota.api import job_targets
from rota.api.job_body import COMMAND_ONLY, NAMES, TARGETS, Events, JobBody, ScheduleOptions, Upstream, policy_of
from rota.api.problem import Problem, bad_member
from rota.config import Settings
from rota.domain import callback, json_schema, names, retry
from rota.domain.dependency import CountedEnd
from rota.domain.dependency import Upstream as Edge
from rota.domain.duration import seconds
from rota.domain.errors import DefinitionError, UsageError
from rota.domain.job import Definition
from rota.domain.schedule import Spec
from rota.domain.unique import check_key
from rota.executors import data_jobs
from rota.ops.job_definitions import JobToStore
from rota.sdk.registered_job import RegisteredJob
from rota.sdk.registry import Registry
from rota.sdk.schedule_options import specs
from rota.store import definition_reader as reader
from rota.store.definition_reader import JobRow
from rota.store.port import View

DEFAULT_APP = "default"
DEFAULT_TIMEOUT_S = 3600.0
_CRON = re.compile(r"cron\b")


def app_of(body: JobBody) -> str:
    if body.function is not None:
        if body.app not in (None, body.function.app):
            raise bad_member("/app", "a job with a function belongs to the app of that function")
        return body.function.app
    return body.app or DEFAULT_APP


def wanted(view: View, namespace: str, body: JobBody, settings: Settings, template: str | None = None) -> JobToStore:
    """The job that a body describes. A Problem names the members that are wrong."""
    app = app_of(body)
    with at("/app"):
        callback.check_app(app)
    _check_name(body.name)
    _check_target(body)
    depends_on, shown = _dependencies(view, namespace, body, app)
    options = _options(body)
    registry = Registry(app, settings)
    target = job_targets.made(view, namespace, body)
    with at(f"/{target.member}"):
        job_targets.check_secrets(target.data)
    with at(""):
        job = registry.add_job(target.function, body.name, target.declared, options)
    schedules = _schedules(job, app, body, registry)
    needs, runs = job.definition.needs, target.runs
    definition = msgspec.structs.replace(
        job.definition,
        target=target.data,
        parameters=job.definition.parameters if runs is None else runs.parameters,
        needs=needs if runs is None else msgspec.structs.replace(needs, isolated=runs.needs.isolated),
        depends_on=sorted(depends_on),
        arguments=_arguments(job, body, registry) if depends_on else "{}",
    )
    _check_parameters(body)
    source = msgspec.json.encode(_source(body, app, definition, shown)).decode()
    return JobToStore(
        app=app,
        definition=definition,
        source=source,
        runs=data_jobs.runs(definition),
        schedules=schedules,
        template=template,
    )


@contextmanager
def at(pointer: str, code: str = "bad_field") -> Iterator[None]:
    """Turns the refusal of a member into a Problem that points to it."""
    try:
        yield
    except (UsageError, TypeError, ValueError) as error:
        found = getattr(error, "code", "") or code
        code = found if found in ("needs_shell", "bad_arguments", "cycle", "bad_cron") else code
        problem = bad_member(pointer, str(error), code) if pointer else Problem("bad_definition", str(error))
        raise problem from None


def _check_name(name: str) -> None:
    with at("/name"):
        names.check(name, "a job's name")
        if ids.is_id(name.lower()):
            raise DefinitionError("a job's name cannot have the form of an id")


def _check_target(body: JobBody) -> None:
    given = [name for name in TARGETS if getattr(body, name) is not None]
    if len(given) != 1:
        words = f"a job has one of {', '.join(TARGETS)}, not {', '.join(given) or 'none of them'}"
        raise bad_member(f"/{given[1]}", words) if given else Problem("bad_field", words)
    if body.command is None:
        for name in COMMAND_ONLY:
            if getattr(body, name) is not None:
                raise bad_member(f"/{NAMES[name]}", f"{NAMES[name]} is for a job with a command")
    if body.retries is not None and body.retry is not None:
        raise bad_member("/retries", "give retries or retry, not both")


def _options(body: JobBody) -> dict[str, Any]:
    """The options as the SDK names them, each checked with a pointer to it."""
    options: dict[str, Any] = {"retry": _retry(body)}
    with at("/timeout"):
        limit_s = DEFAULT_TIMEOUT_S if body.timeout is None else seconds(body.timeout, "timeout")
        options["timeout"] = limit_s or None
    for name, pointer in (
        ("total_timeout", "/totalTimeout"),
        ("start_within", "/startWithin"),
        ("progress_timeout", "/progressTimeout"),
    ):
        if (given := getattr(body, name)) is not None:
            with at(pointer):
                options[name] = seconds(given, pointer[1:]) or None
    if body.queue is not None:
        with at("/queue"):
            options["queue"] = names.check(body.queue, "a queue's name")
    for name in ("priority", "pool", "requires", "resources", "affinity", "pause_after", "description"):
        if (given := getattr(body, name)) is not None:
            options[name] = given
    if body.breakers is not None:
        options["breaker"] = body.breakers
    with at("/tags"):
        for tag in body.tags or ():
            check_key(tag, "a tag")
    return options | _events(body.on)


def _events(given: str | list[str] | Events | None) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Events):
        return {"on": given}
    options = {"on": given.event, "where": given.where, "debounce": given.debounce}
    return {name: value for name, value in options.items() if value is not None}


def _retry(body: JobBody) -> retry.Policy:
    if body.retry is not None:
        with at("/retry"):
            return policy_of(body.retry)
    return retry.DEFAULT if body.retries is None else retry.Exponential(attempts=body.retries + 1)


def _dependencies(view: View, namespace: str, body: JobBody, app: str) -> tuple[list[Edge], list[Any]]:
    """The edges, and the dependencies as they are given back: with ids."""
    found: dict[tuple[str, str], Edge] = {}
    shown: list[Any] = []
    for place, given in enumerate(body.dependencies or ()):
        pointer = f"/dependencies/{place}"
        reference, on = (given.job, given.on) if isinstance(given, Upstream) else (given, "success")
        row = _upstream(view, namespace, reference, app, pointer)
        if (row.app, row.name) == (app, body.name):
            raise bad_member(pointer, "a job cannot depend on itself", "cycle")
        if (row.app, row.name) in found:
            raise bad_member(pointer, f"the job {row.name} is named twice")
        found[row.app, row.name] = Edge(row.app, row.name, CountedEnd(on))
        shown.append(row.id if on == "success" else {"job": row.id, "on": on})
    return list(found.values()), shown


def _upstream(view: View, namespace: str, reference: str, app: str, pointer: str) -> JobRow:
    """The job that a dependency names, by id or name. A name is looked up in the app `app` first, then in all apps."""
    row = None if ids.is_id(reference) else reader.find(view, namespace, reference, app)
    try:
        row = row or reader.find(view, namespace, reference)
    except reader.Ambiguous as error:
        raise bad_member(pointer, str(error)) from None
    if row is None or row.deleted_at is not None:
        raise bad_member(pointer, f"there is no job {reference[:128]!r}: create it first", "unknown_job")
    return row


def _arguments(job: RegisteredJob, body: JobBody, registry: Registry) -> str:
    with at("/arguments", "bad_arguments"):
        return registry.encode(job, body.arguments or {})


def _schedules(job: RegisteredJob, app: str, body: JobBody, registry: Registry) -> list[Spec]:
    if body.schedule is None:
        return []
    encoded = _arguments(job, body, registry)
    many = isinstance(body.schedule, list)
    given = body.schedule if isinstance(body.schedule, list) else [body.schedule]
    found: list[Spec] = []
    for place, one in enumerate(given):
        pointer = f"/schedule/{place}" if many else "/schedule"
        with _scheduled_at(pointer):
            when: Any = {"cron": one} if isinstance(one, str) else _when(one)
            found += specs(job.definition, app, when, encoded)
    return found


@contextmanager
def _scheduled_at(pointer: str) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise bad_member(pointer, str(error), "bad_cron" if _CRON.match(str(error)) else "bad_field") from None


def _when(given: ScheduleOptions) -> dict[str, Any]:
    return {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not None}


def _check_parameters(body: JobBody) -> None:
    if body.parameters is not None:
        with at("/parameters"):
            json_schema.check_schema(body.parameters)


# --- The definition as it is given back -----------------------------------------------------------


def _source(body: JobBody, app: str, definition: Definition, dependencies: list[Any]) -> dict[str, Any]:
    """The body in full: what PUT takes, with defaults and the ids of dependencies."""
    about = definition
    given: dict[str, Any] = msgspec.to_builtins(body)
    # In the order of the members, whichever way they came: equal definitions are equal texts.
    shown = {name: given[name] for name in NAMES.values()}
    for name in ("schedule", "retry", "http", "on"):
        shown[name] = _without_null(shown[name])
    needs = about.needs
    shown |= {
        "app": app,
        "dependencies": dependencies,
        "queue": about.queue,
        "priority": about.priority,
        "retries": about.retry["attempts"] - 1 if body.retry is None else None,
        "timeout": _whole(about.timeout_s or 0),
        "totalTimeout": _whole(about.total_timeout_s),
        "startWithin": _whole(about.start_within_s),
        "progressTimeout": _whole(about.progress_timeout_s),
        "pool": needs.pool,
        "requires": needs.tags,
        "resources": needs.resources,
        "breakers": needs.breakers,
        "tags": body.tags or [],
        "description": about.description,
    }
    shown.pop("template", None)
    return shown


def _without_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_null(one) for one in value]
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if one is not None}
    return value


def _whole(value: float | None) -> float | None:
    return int(value) if value is not None and value == int(value) else value


def merged(source: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The definition `source`, with the members of `given` in place of its own.

    A new target (command, HTTP request or function) also removes the options of the old one.
    """
    found = {name: value for name, value in source.items() if value is not None}
    if any(given.get(name) is not None for name in TARGETS):
        gone: set[str] = set(TARGETS)
        if given.get("command") is None:
            gone |= {NAMES[name] for name in COMMAND_ONLY}
        found = {name: value for name, value in found.items() if name not in gone}
    for one, other in (("retries", "retry"), ("retry", "retries")):
        if given.get(one) is not None:
            found.pop(other, None)
    return {name: value for name, value in {**found, **given}.items() if value is not None}
