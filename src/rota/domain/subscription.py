"""Jobs and workflows that events start: what `on=` declares, and how arguments are made from a payload."""

from __future__ import annotations

from typing import Any

import msgspec


class Subscribes(msgspec.Struct, frozen=True):
    """`on=`, `where=` and `debounce=` of a job, in its definition."""

    names: list[str]
    """The names of the events, sorted."""
    where: dict[str, Any] = {}
    debounce_s: float | None = None


class Target(msgspec.Struct, frozen=True):
    """The part of a job's definition that a delivery needs. It is stored with the subscription, to save a read."""

    queue: str
    priority: int = 0
    start_within_s: float | None = None
    debounce_s: float | None = None
    parameters: list[str] = []
    takes_others: bool = False
    """Whether the job also takes arguments of other names (`**kwargs`)."""


decode_target = msgspec.json.Decoder(Target).decode


def arguments(target: Target, payload: str) -> str:
    """The arguments of an execution that an event starts, as JSON.

    A job with one parameter gets the whole payload as its argument. A job with several parameters gets the members of
    the payload that have the names of its parameters. If members are missing, or the payload is not an object, the
    execution fails with `bad_arguments` when it runs.
    """
    if not target.parameters and not target.takes_others:
        return "{}"
    if len(target.parameters) == 1 and not target.takes_others:
        return f"{{{msgspec.json.encode(target.parameters[0]).decode()}:{payload}}}"
    try:
        members = msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return "{}"
    taken = {name: value for name, value in members.items() if target.takes_others or name in target.parameters}
    return msgspec.json.encode(taken).decode()
