"""How one enqueue differs from the job's defaults."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from rota.domain import headers, overrides, rank, retry, unique
from rota.domain.duration import Duration, positive_seconds, seconds
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.retry import Policy
from rota.domain.unique import Unique
from rota.ops.submission import Header

MOST_TAGS = 50


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What `job.options(…)` takes."""

    delay: Duration | None = None
    at: datetime | None = None
    priority: int | str | None = None
    queue: str | None = None
    key: str | None = None
    unique: Unique | bool | str | None = None
    start_by: datetime | None = None
    start_within: Duration | None = None
    tags: list[str] | None = None
    timeout: Duration | None = None
    retry: Policy | int | None = None
    headers: dict[str, str] | None = None

    def applied_to(self, header: Header) -> Header:
        """The header of an enqueue with these options; refuses what cannot be meant."""
        if self.delay is not None and self.at is not None:
            raise DefinitionError("give delay= or at=, not both")
        if self.start_by is not None and self.start_within is not None:
            raise DefinitionError("give start_by= or start_within=, not both")
        changes: dict[str, object] = {}
        if self.delay is not None:
            changes["delay_s"] = seconds(self.delay, "delay")
        if self.at is not None:
            changes["at"] = instant(self.at, "at")
        if self.priority is not None:
            changes["priority"] = rank.level(self.priority)
        if self.key is not None:
            changes["key"] = unique.check_key(self.key, "key")
        if self.unique is not None and self.unique is not False:
            changes["unique"] = _unique(self.unique)
        if self.start_by is not None:
            changes["start_by"] = instant(self.start_by, "start_by")
        if self.start_within is not None:
            changes["start_within_s"] = positive_seconds(self.start_within, "start_within")
        if self.queue is not None:
            changes["queue"] = self.queue
        if self.tags is not None:
            changes["tags"] = msgspec.json.encode(self.tags).decode()
        if self.headers is not None:
            changes["headers"] = headers.encode(self.headers)
        timeout_s = None if self.timeout is None else positive_seconds(self.timeout, "timeout")
        policy = None if self.retry is None else retry.policy(self.retry)
        changes["overrides"] = overrides.encode(timeout_s, policy)
        return msgspec.structs.replace(header, **changes)


def instant(value: datetime, what: str) -> int:
    """A datetime as microseconds; one without a zone could mean anything, so it is refused."""
    if not isinstance(value, datetime):
        raise DefinitionError(f"{what} must be a datetime, not {value!r}")
    if value.tzinfo is None:
        raise DefinitionError(f"{what} needs a time zone: {what}=datetime(…, tzinfo=UTC), not a naive datetime")
    return round(value.timestamp() * MICROSECONDS)


def checked_tags(tags: Iterable[str]) -> list[str]:
    """The tags as a list; a lone text is refused, because its letters are not what was meant."""
    if isinstance(tags, str):
        raise DefinitionError(f"tags must be a list of texts, such as [{tags[:64]!r}], not one text")
    every = [unique.check_key(tag, "a tag") for tag in tags]
    if len(every) > MOST_TAGS:
        raise DefinitionError(f"an execution has at most {MOST_TAGS} tags, not {len(every)}")
    return every


def _unique(value: Unique | bool | str) -> Unique:
    if isinstance(value, Unique):
        return value
    if value is True:
        return Unique()
    if isinstance(value, str):
        return Unique(key=value)
    raise DefinitionError(f"unique must be True, a key, or rota.Unique(…), not {value!r}")
