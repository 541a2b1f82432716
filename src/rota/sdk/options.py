"""How one enqueue differs from the job's defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

import msgspec

from rota.domain import headers, names, overrides, rank, retry, unique
from rota.domain.duration import Duration, positive_seconds, seconds
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.retry import Policy
from rota.domain.unique import Unique
from rota.ops.submission import Header

MOST_TAGS = 50


class Options(TypedDict, total=False):
    """The options of `job.options(…)`. None is the same as leaving an option out, except for `retry`: no retries."""

    delay: Duration | None
    at: datetime | None
    priority: int | str | None
    queue: str | None
    key: str | None
    unique: Unique | bool | str | None
    start_by: datetime | None
    start_within: Duration | None
    tags: Iterable[str] | None
    timeout: Duration | None
    retry: Policy | int | bool | None
    headers: Mapping[str, str] | None
    name: str | None
    at_once: int | None
    tolerate: int | str | None
    may_fail: bool | None
    undo_failed: bool | None


STEP_ONLY = ("name", "at_once", "tolerate", "may_fail", "undo", "undo_failed")
"""The options that only a step of a workflow has."""


def applied(options: Options, header: Header) -> Header:
    """The header of an enqueue with these options; refuses those that contradict each other or cannot be meant."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if unknown := sorted(given.keys() - Options.__annotations__.keys() - set(STEP_ONLY)):
        raise TypeError(f"there is no option {unknown[0]!r}")
    for name in STEP_ONLY:
        given.pop(name, None)
    for one, other in (("delay", "at"), ("start_by", "start_within")):
        if one in given and other in given:
            raise DefinitionError(f"give {one}= or {other}=, not both")
    timeout, policy = given.pop("timeout", None), given.pop("retry", None)
    timeout_s = None if timeout is None else positive_seconds(timeout, "timeout")
    changes = dict(_field(name, value) for name, value in given.items())
    changes["overrides"] = overrides.encode(timeout_s, None if policy is None else retry.policy(policy))
    return msgspec.structs.replace(header, **changes)


def _field(option: str, value: Any) -> tuple[str, Any]:
    """The field of the header that an option sets, and its value there."""
    match option:
        case "delay":
            return "delay_s", seconds(value, option)
        case "at" | "start_by":
            return option, instant(value, option)
        case "priority":
            return option, rank.level(value)
        case "queue":
            return option, names.check(value, "a queue's name")
        case "key":
            return option, unique.check_key(value, option)
        case "unique":
            return option, _unique(value)
        case "start_within":
            return "start_within_s", positive_seconds(value, option)
        case "tags":
            return option, msgspec.json.encode(checked_tags(value)).decode()
        case _:
            return option, headers.encode(headers.checked_headers(value))


def instant(value: datetime, what: str) -> int:
    """A datetime as microseconds; one without a zone could mean anything, so it is refused."""
    if not isinstance(value, datetime):
        raise DefinitionError(f"{what} must be a datetime, not {value!r}")
    if value.tzinfo is None:
        raise DefinitionError(f"{what} needs a time zone: {what}=datetime(…, tzinfo=UTC), not a naive datetime")
    return round(value.timestamp() * MICROSECONDS)


def checked_tags(tags: Iterable[str]) -> list[str]:
    """The tags as a list; a single text is refused, because its letters would be taken for tags."""
    if isinstance(tags, str):
        raise DefinitionError(f"tags must be a list of texts, such as [{tags[:64]!r}], not one text")
    every = [unique.check_key(tag, "a tag") for tag in tags]
    if len(every) > MOST_TAGS:
        raise DefinitionError(f"an execution has at most {MOST_TAGS} tags, not {len(every)}")
    return every


def _unique(value: Unique | bool | str) -> Unique | None:
    if isinstance(value, Unique):
        return value
    if isinstance(value, bool):
        return Unique() if value else None
    if isinstance(value, str):
        return Unique(key=value)
    raise DefinitionError(f"unique must be True, a key, or rota.Unique(…), not {value!r}")
