"""The bodies of requests to a server: enqueues, events, schedules and retries as the API takes them."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain import overrides
from rota.domain.errors import UsageError
from rota.domain.instant import rfc3339
from rota.domain.schedule import Spec
from rota.domain.unique import Unique
from rota.ops.events.emit import Emission
from rota.ops.runs.retry import Request
from rota.ops.submission import Header
from rota.views.schedule_options import options


def enqueue(header: Header) -> dict[str, Any]:
    """The options of an enqueue, without the arguments."""
    return _given(
        job=header.job,
        app=header.app,
        queue=header.queue,
        priority=header.priority,
        delay=header.delay_s or None,
        at=None if header.at is None else rfc3339(header.at),
        key=header.key,
        unique=None if header.unique is None else _unique(header.unique),
        startBy=None if header.start_by is None else rfc3339(header.start_by),
        startWithin=header.start_within_s if header.start_by is None else None,
        tags=None if header.tags is None else msgspec.Raw(header.tags.encode()),
        headers=None if header.headers is None else msgspec.Raw(header.headers.encode()),
        **_overrides(header.overrides),
    )


def event(emission: Emission) -> dict[str, Any]:
    raw = msgspec.Raw(emission.payload.encode())
    return _given(name=emission.name, payload=raw, subject=emission.subject or None, key=emission.key)


def schedule(spec: Spec) -> dict[str, Any]:
    """Every option: null puts the default back if the schedule is there already."""
    return {_camel(name): value for name, value in options(spec).items()}


def retry(request: Request) -> dict[str, Any]:
    return _given(
        fromStep=request.from_,
        arguments=None if request.arguments is None else msgspec.Raw(request.arguments.encode()),
        stepArguments=dict(request.step_arguments) or None,
        version="latest" if request.latest else request.version,
    )


def _unique(wanted: Unique) -> dict[str, Any]:
    return _given(key=wanted.key, scope=wanted.window_s() or wanted.scope, onConflict=wanted.on_conflict)


def _overrides(stored: str | None) -> dict[str, Any]:
    if stored is None:
        return {}
    own = overrides.decode(stored)
    if own.version is not None:
        raise UsageError("over HTTP a run is of the version that is in force: leave out version=")
    retry = None if own.retry is None else {**own.retry, "policy": str(own.retry["policy"]).lower()}
    return _given(timeout=own.timeout_s, retry=retry)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
