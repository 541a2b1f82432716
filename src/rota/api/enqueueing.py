"""An enqueue as a request has it, and as the store takes it: a header for the options, an item for the arguments.

`EnqueueOptions` is also the body of a trigger; `Enqueue` adds which job it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec

from rota.api.job_body import RetryPolicy, policy_of
from rota.api.problem import Flaw, Problem
from rota.api.target import Target
from rota.domain import callback, headers, job_parameters, json_schema, names, overrides, payload, rank, retry, unique
from rota.domain.duration import positive_seconds, seconds
from rota.domain.errors import DefinitionError
from rota.domain.status import Status
from rota.domain.workflow import run_arguments
from rota.executors.http import address
from rota.ops.submission import Header
from rota.sdk.options import checked_tags, instant

T = TypeVar("T")
Length = float | int | str
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
LONGEST_URL = 2048
NO_ARGUMENTS = msgspec.Raw(b"")
_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


class UniqueBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """At most one execution of the job per key; without a key, per arguments.

    `scope` is `queued`, `active` (the default), `forever` or a duration; `onConflict` is `return` (the default),
    `reject`, `replace` or `debounce`.
    """

    key: str | None = None
    """The key; without it the arguments are the key."""
    scope: Length | None = None
    """How long the key holds: `queued`, `active`, `forever` or a duration."""
    on_conflict: unique.OnConflict | None = None
    """What a second one does: `return`, `reject`, `replace` or `debounce`."""


class CallbackBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The URL that is called at the end of the execution; `on` lists the final statuses it is called for, or all."""

    url: str
    on: tuple[Status, ...] | None = None
    """The final statuses that it is called for; all without it."""


class EnqueueOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How an execution differs from the defaults of its job.

    `retries: 3` means four attempts with the job's own delays; `retry` is a whole policy instead.
    """

    arguments: msgspec.Raw = msgspec.field(default_factory=lambda: NO_ARGUMENTS)
    delay: Length | None = None
    at: Moment | None = None
    """The time of its start."""
    priority: int | str | None = None
    queue: str | None = None
    key: str | None = None
    unique: UniqueBody | None = None
    """Allows at most one execution of the job per key."""
    start_by: Moment | None = None
    start_within: Length | None = None
    timeout: Length | None = None
    retries: int | None = None
    retry: RetryPolicy | None = None
    tags: tuple[str, ...] | None = None
    headers: dict[str, str] | None = None
    callback: CallbackBody | None = None


class Enqueue(EnqueueOptions, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One execution to accept. `job` is the id or the name of a job; `app` decides between jobs of one name."""

    job: str
    app: str | None = None


def header(options: EnqueueOptions, target: Target, actor: str, pointer: str, flaws: list[Flaw]) -> Header | None:
    """The header of an enqueue with these options; None if `flaws` got some."""
    before = len(flaws)
    check = _Checks(pointer, flaws)
    for one, other in (("delay", "at"), ("startBy", "startWithin"), ("retries", "retry")):
        first, second = (getattr(options, name) for name in (_snake(one), _snake(other)))
        if first is not None and second is not None:
            flaws.append(Flaw("bad_field", f"give {one} or {other}, not both", pointer=f"{pointer}/{other}"))
    start_within_s = check("startWithin", options.start_within, lambda given: positive_seconds(given, "startWithin"))
    found = {
        "actor": actor,
        "key": check("key", options.key, lambda given: unique.check_key(given, "key")),
        "tags": check("tags", options.tags, lambda given: msgspec.json.encode(checked_tags(given)).decode()),
        "headers": check("headers", options.headers, _headers),
        "overrides": _overrides(check, options, target),
        "callback": _callback(options.callback, pointer, flaws),
        "queue": check("queue", options.queue, lambda given: names.check(given, "a queue's name")) or target.queue,
        "priority": check("priority", options.priority, rank.level, target.priority),
        "delay_s": check("delay", options.delay, lambda given: seconds(given, "delay"), 0.0),
        "at": check("at", options.at, lambda given: instant(given, "at")),
        "start_by": check("startBy", options.start_by, lambda given: instant(given, "startBy")),
        "start_within_s": target.start_within_s if options.start_within is None else start_within_s,
        "unique": check("unique", options.unique, _unique),
    }
    if len(flaws) > before:
        return None
    if options.start_by is not None:
        found["start_within_s"] = None
    return Header(namespace=target.namespace, app=target.app, job=target.name, **found)


def arguments(given: msgspec.Raw, target: Target, most: int, pointer: str, flaws: list[Flaw]) -> str:
    """The arguments as the text that is stored: as they were sent, once they are known to fit. The JSON is checked."""
    data = bytes(given)
    if data in (b"null", b""):
        data = target.arguments.encode()
    where = f"{pointer}/arguments"
    if data[:1] != b"{":
        flaws.append(Flaw("bad_arguments", "arguments must be an object with the arguments by name", pointer=where))
    elif len(data) > most:
        flaws.append(Flaw("bad_arguments", f"arguments take at most {most:,} bytes, not {len(data):,}", pointer=where))
    elif not target.takes_all:
        values = _decode(data)
        if target.schema is not None:
            for place, words in json_schema.faults(target.schema, values):
                flaws.append(Flaw("bad_arguments", f"{place[1:]} {words}", pointer=where + place))
        flaws += misfits(target.name, values, target.parameters, target.graph, where)
    return data.decode()


def misfits(
    job: str,
    values: dict[str, Any],
    parameters: job_parameters.Parameters,
    graph: dict[str, Any] | None,
    pointer: str = "/arguments",
) -> list[Flaw]:
    """What does not fit the parameters of a job; those of a workflow have their types in its data form."""
    found = job_parameters.misfits(values, parameters)
    if graph is not None:
        found = run_arguments.misfits(values, graph.get("parameters", {}), graph.get("required", ()))
    return [Flaw("bad_arguments", f"{job}(): {words}", pointer=f"{pointer}/{_escaped(name)}") for name, words in found]


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def trace(given: Mapping[str, str]) -> str | None:
    """The header `traceparent` of a request, which is kept with its execution."""
    text = given.get("traceparent", "")
    return text if _TRACE.fullmatch(text) else None


def digest(text: str) -> str:
    """The hash of arguments, for keys."""
    return payload.digest(text)


class _Checks:
    """Converts one option after the other. An option that is refused becomes a flaw with its pointer."""

    def __init__(self, pointer: str, flaws: list[Flaw]) -> None:
        self._pointer, self._flaws = pointer, flaws

    def __call__(self, name: str, given: Any, convert: Callable[[Any], T], default: Any = None) -> Any:
        if given is None:
            return default
        try:
            return convert(given)
        except DefinitionError as error:
            self._flaws.append(Flaw("bad_field", str(error), pointer=f"{self._pointer}/{name}"))
            return default


def _headers(given: dict[str, str]) -> str | None:
    return headers.encode(headers.checked_headers(given))


def _unique(given: UniqueBody) -> unique.Unique:
    action = given.on_conflict or unique.OnConflict.RETURN
    return unique.Unique(key=given.key, scope=given.scope or "active", on_conflict=action.value)


def _overrides(check: _Checks, options: EnqueueOptions, target: Target) -> str | None:
    timeout_s = check("timeout", options.timeout, lambda given: seconds(given, "timeout"))
    policy = check("retries", options.retries, lambda given: _policy(given, target))
    policy = check("retry", options.retry, policy_of, policy)
    return overrides.encode(timeout_s, policy)


def _policy(retries: int, target: Target) -> retry.Policy:
    """The policy of the job with another number of attempts: one more than the retries."""
    if not 0 <= retries < retry.MOST_ATTEMPTS:
        raise DefinitionError(f"retries must be between 0 and {retry.MOST_ATTEMPTS - 1}, not {retries}")
    own = retry.described(target.retry) if target.retry else retry.DEFAULT
    return msgspec.structs.replace(own, attempts=retries + 1)


def _callback(given: CallbackBody | None, pointer: str, flaws: list[Flaw]) -> str | None:
    if given is None:
        return None
    if given.on is not None and (not given.on or not set(given.on) <= set(callback.ENDS)):
        words = f"on takes final statuses: {', '.join(callback.ENDS)}"
        flaws.append(Flaw("bad_field", words, pointer=f"{pointer}/callback/on"))
        return None
    try:
        if len(given.url) > LONGEST_URL:
            raise DefinitionError(f"a callback's url has at most {LONGEST_URL:,} characters")
        address.check_literal(given.url)
    except DefinitionError as error:
        flaws.append(Flaw("bad_field", str(error), pointer=f"{pointer}/callback/url"))
    except address.Refused as error:
        flaws.append(Flaw("forbidden_address", str(error), pointer=f"{pointer}/callback/url"))
    return callback.encode(given.url, given.on)


def refused(flaws: list[Flaw]) -> Problem:
    return Problem(flaws[0].code, flaws[0].detail, flaws=flaws)


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _escaped(name: str) -> str:
    return name[:64].replace("~", "~0").replace("/", "~1")
