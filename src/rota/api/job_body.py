"""The bodies by which jobs are defined. Null is the same as a member that is left out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from rota.domain import retry
from rota.domain.errors import DefinitionError
from rota.domain.retry import MOST_ATTEMPTS

Seconds = int | float | str
"""A number of seconds, or a text such as "90s" or "1h30m"."""
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Retries = Annotated[int, msgspec.Meta(ge=0, le=MOST_ATTEMPTS - 1)]
Words = str | list[Any]
_POLICIES = {"exponential": retry.Exponential, "linear": retry.Linear, "fixed": retry.Fixed}


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a body."""


class ScheduleOptions(Part, frozen=True, kw_only=True):
    """When a job runs by itself: one of `cron`, `every`, `after` and `at`, and more."""

    cron: str | None = None
    every: Seconds | None = None
    after: Seconds | None = None
    """How long after the end of one execution the next one starts, in seconds or as text."""
    at: datetime | list[datetime] | None = None
    """One time, or several, at which it fires."""
    tz: str | None = None
    phase: Seconds | None = None
    start: datetime | None = None
    end: datetime | None = None
    exclude: list[str] | None = None
    calendars: list[str] | None = None
    dst_gap: str | None = None
    dst_overlap: str | None = None
    catch_up: str | int | None = None
    window: Seconds | None = None
    overlap: str | None = None
    jitter: Seconds | None = None


class RetryPolicy(Part, frozen=True, kw_only=True):
    """When and how often a failed attempt is retried. `attempts` counts the first one too: 4 attempts are 3 retries."""

    policy: Literal["exponential", "linear", "fixed"] = "exponential"
    """How delays grow: `exponential`, `linear` or `fixed`."""
    attempts: Annotated[int, msgspec.Meta(ge=1, le=MOST_ATTEMPTS)] = 5
    """The most attempts in all, with the first one."""
    base: Seconds | None = None
    """`exponential`: the bound of the first delay, in seconds or as text."""
    factor: float | None = None
    """`exponential`: by how much the bound grows with each delay."""
    cap: Seconds | None = None
    """`exponential` and `linear`: the longest delay, in seconds or as text."""
    jitter: bool | None = None
    """`exponential`: whether a delay is random, between zero and its bound."""
    step: Seconds | None = None
    """`linear`: the first delay, and by how much each is longer than the one before, in seconds or as text."""
    delay: Seconds | None = None
    """`fixed`: every delay, in seconds or as text."""


def policy_of(given: RetryPolicy) -> retry.Policy:
    """The policy that a request describes; a DefinitionError if it has members of another kind of policy."""
    kind = _POLICIES[given.policy]
    fields = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not None}
    fields.pop("policy", None)
    if unknown := sorted(fields.keys() - set(kind.__struct_fields__)):
        raise DefinitionError(f"the policy {given.policy} has no {unknown[0]}")
    return kind(**fields)  # type: ignore[no-any-return]


class HttpTarget(Part, frozen=True, kw_only=True):
    """An HTTP request. `{name}` in its texts stands for an argument."""

    url: str
    """The URL of the request."""
    method: str | None = None
    """The method of the request; GET without it."""
    headers: dict[str, Any] | None = None
    """Headers of the request."""
    query: dict[str, Any] | None = None
    """Parameters of the URL."""
    body: str | None = None
    """The body of the request."""
    content_type: str | None = None
    """The media type of the body."""
    success: list[int | str] | None = None
    """The statuses that mean success."""
    retry_codes: list[int | str] | None = None
    """Statuses after which another attempt is made."""
    connect_timeout: Seconds | None = None
    """The longest time until the connection stands, in seconds or as text."""
    max_response_bytes: int | None = None
    """The most bytes of the answer that are read."""
    follow_redirects: int | None = None
    """How many redirects are followed."""
    result: Literal["none", "json", "text", "full"] | None = None
    """What becomes the result: none, json, text or full."""
    secret: str | None = None
    """The name of the secret that signs the request."""


class FunctionTarget(Part, frozen=True, kw_only=True):
    """The function of a job that an app declares."""

    app: Name
    name: Name


class Upstream(Part, frozen=True, kw_only=True):
    """A job whose end starts this one; `on` says which end counts."""

    job: str
    """The name or id of the job."""
    on: Literal["success", "failed", "done"] = "success"
    """The end that counts: success, failed or done."""


class Events(Part, frozen=True, kw_only=True):
    """The events that start the job."""

    event: str | list[str]
    where: dict[str, Any] | None = None
    """What the payload of the event must be."""
    debounce: Seconds | None = None
    """How long no further event must come before the job starts, in seconds or as text."""


class JobBody(Part, frozen=True, kw_only=True):
    """A job. It has one target: `command`, `http` or `function`; or it is made of a `template` with `parameters`.

    `retries: 3` is four attempts; `retry` is a whole policy instead. `timeout: 0` is no bound.
    """

    name: str
    app: Name | None = None
    command: Words | None = None
    environment: dict[str, Any] | None = None
    inherits: list[str] | None = None
    directory: str | None = None
    success_codes: list[int] | None = None
    retry_codes: list[int] | None = None
    permanent_codes: list[int] | None = None
    result: Literal["none", "json", "text"] | None = None
    """What becomes the result of a command: none, json or text."""
    memory: int | str | None = None
    grace: Seconds | None = None
    http: HttpTarget | None = None
    function: FunctionTarget | None = None
    template: str | None = None
    parameters: dict[str, Any] | None = None
    """A JSON Schema that arguments must fit; with `template`, the values of its parameters."""
    schedule: str | ScheduleOptions | list[str | ScheduleOptions] | None = None
    on: str | list[str] | Events | None = None
    """The events that start it."""
    dependencies: list[str | Upstream] | None = None
    arguments: dict[str, Any] | None = None
    """The arguments of executions that its schedule or its dependencies start."""
    queue: str | None = None
    priority: int | str | None = None
    retries: Retries | None = None
    retry: RetryPolicy | None = None
    timeout: Seconds | None = None
    total_timeout: Seconds | None = None
    start_within: Seconds | None = None
    progress_timeout: Seconds | None = None
    pool: str | None = None
    requires: list[str] | None = None
    resources: dict[str, int | float | str] | None = None
    breakers: list[str] | None = None
    affinity: str | None = None
    pause_after: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    tags: Annotated[list[str], msgspec.Meta(max_length=50)] | None = None
    description: Annotated[str, msgspec.Meta(max_length=4000)] | None = None


class JobPatch(JobBody, frozen=True, kw_only=True):
    """The members of a job to replace. A member that is null gets its default back."""

    name: str | None = None  # type: ignore[assignment]


class TemplateBody(Part, frozen=True, kw_only=True):
    """A template, from which jobs are made. `{"$parameter": "month"}` in it stands for a value that each job gives."""

    name: str
    job: dict[str, Any]
    """The definition of the jobs that are made of it."""
    parameters: dict[str, Any] | None = None
    """The parameters by name: type, default, bounds and choices."""
    description: Annotated[str, msgspec.Meta(max_length=4000)] | None = None


class TemplatePatch(TemplateBody, frozen=True, kw_only=True):
    """The members of a template to replace."""

    name: str | None = None  # type: ignore[assignment]
    job: dict[str, Any] | None = None  # type: ignore[assignment]


TARGETS = ("command", "http", "function")
COMMAND_ONLY = (
    "environment",
    "inherits",
    "directory",
    "success_codes",
    "retry_codes",
    "permanent_codes",
    "result",
    "memory",
    "grace",
)
"""Members that only a command has."""
NAMES = dict(zip(JobBody.__struct_fields__, JobBody.__struct_encode_fields__, strict=True))
"""The names of the members in requests, by their names in Python."""
