"""A schedule as data: the job, its trigger and arguments, and the policies for missed and overlapping ticks."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import MAXYEAR, date
from enum import StrEnum
from functools import lru_cache

import msgspec

from rota.domain import names
from rota.domain import trigger as triggers
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.trigger import Trigger
from rota.domain.zone import zone

DAY_S = 86_400.0
SHARDS = 64
PATIENCE = 300_000
MOST_CAUGHT_UP = 1000
MOST_EXCLUDED = 1000
MOST_CALENDARS = 20


class CatchUp(StrEnum):
    """The policy for ticks that were missed because no worker ran."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


class Overlap(StrEnum):
    """The policy for a tick while the execution of the tick before has not ended."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"
    CANCEL_PREVIOUS = "cancel_previous"
    ALLOW = "allow"


class Spec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything about a schedule that its owner decides. Two equal texts are the same."""

    job: str
    trigger: Trigger
    tz: str = "UTC"
    arguments: str = "{}"
    queue: str = "default"
    priority: int = 0
    start: int | None = None
    end: int | None = None
    excluded: tuple[str, ...] = ()
    calendars: tuple[str, ...] = ()
    catch_up: CatchUp = CatchUp.LAST
    catch_up_most: int = 100
    window_s: float | None = None
    overlap: Overlap = Overlap.SKIP
    jitter_s: float = 0.0
    start_within_s: float | None = None

    @property
    def reach_s(self) -> float:
        """The maximum age of a missed tick that is still caught up."""
        return DAY_S if self.window_s is None else self.window_s


_decode = msgspec.json.Decoder(Spec).decode


def check(spec: Spec) -> Spec:
    """The spec, or a DefinitionError that names the field which is wrong."""
    triggers.check(spec.trigger)
    zone(spec.tz)
    triggers.check_instant("start", spec.start)
    triggers.check_instant("end", spec.end, last_year=MAXYEAR)  # People write the year 9999 if they mean forever.
    if spec.start is not None and spec.end is not None and spec.end < spec.start:
        raise DefinitionError("end: comes before the start")
    if len(spec.excluded) > MOST_EXCLUDED:
        raise DefinitionError(f"exclude: at most {MOST_EXCLUDED} dates; make a calendar of them")
    days(spec.excluded)
    if len(spec.calendars) > MOST_CALENDARS:
        raise DefinitionError(f"calendars: at most {MOST_CALENDARS}; make one of them")
    for name in spec.calendars:
        names.check(name, "a calendar's name")
    if not 1 <= spec.catch_up_most <= MOST_CAUGHT_UP:
        raise DefinitionError(f"catch_up: between 1 and {MOST_CAUGHT_UP} ticks")
    has_ticks = isinstance(spec.trigger, triggers.After) or triggers.first(
        spec.trigger, (spec.start or 0) - 1, spec.end
    )
    if not has_ticks:
        raise DefinitionError("end: the schedule never fires between its start and its end")
    return spec


@lru_cache(maxsize=65_536)
def days(texts: tuple[str, ...], what: str = "exclude") -> frozenset[date]:
    try:
        return frozenset(date.fromisoformat(text) for text in texts)
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"{what}: a date is written as 2026-12-24 ({error})") from None


def encode(spec: Spec) -> str:
    return msgspec.json.encode(spec, order="sorted").decode()


@lru_cache(maxsize=65_536)
def decode(text: str) -> Spec:
    return _decode(text)


def shard(namespace: str, job: str) -> int:
    """The shard of a job's schedules: the same in every process."""
    return int.from_bytes(hashlib.sha256(f"{namespace}\n{job}".encode()).digest()[:4]) % SHARDS


def share(workers: int, places: Collection[int]) -> list[tuple[int, int]]:
    """Every shard, and for how many microseconds this supervisor leaves its ticks to the worker that owns the shard.

    A live worker owns shards by its position among all live workers. If two workers own a shard for a moment, or
    none does, no tick fires twice or is lost: any worker may fire a tick that is `PATIENCE` late.
    """
    return [(shard, 0 if workers and shard % workers in places else PATIENCE) for shard in range(SHARDS)]


def jitter(spec: Spec, at: int) -> int:
    """How long after its tick an execution may start: always the same for the same tick."""
    if not spec.jitter_s:
        return 0
    spread = int.from_bytes(hashlib.sha256(f"{spec.job}\n{at}".encode()).digest()[:8])
    return spread % max(1, round(spec.jitter_s * MICROSECONDS))
