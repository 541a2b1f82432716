"""When a job runs by itself: the options of `@app.job(…)` and `app.schedule(…)` as the data of a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import Enum
from itertools import islice
from typing import Any, TypedDict, TypeVar

from rota.domain import names, schedule
from rota.domain.duration import Duration, positive_seconds, seconds
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.job import Definition
from rota.domain.schedule import MOST_CALENDARS, MOST_EXCLUDED, CatchUp, Overlap, Spec
from rota.domain.ticks import Gap, Repeat
from rota.domain.trigger import MOST_INSTANTS, After, At, Cron, Every, Trigger
from rota.sdk.options import instant

E = TypeVar("E", bound=Enum)
MOST_TRIGGERS = 100
FOR_EVER = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * MICROSECONDS
_TRIGGERS = ("cron", "every", "after", "at")
_INSTEAD = {"exclude": "make a calendar of them", "calendars": "make one of them", "days": "make several calendars"}
_ONLY_WITH = {"phase": "every", "dst_gap": "cron", "dst_overlap": "cron"}


class When(TypedDict, total=False):
    """The options. At least one of the first four is needed."""

    cron: str | Sequence[str]
    every: Duration
    after: Duration
    at: datetime | Sequence[datetime]
    tz: str
    phase: Duration
    start: datetime
    end: datetime
    exclude: Iterable[date | str]
    calendars: Iterable[str]
    dst_gap: str
    dst_overlap: str
    catch_up: str | int
    window: Duration
    overlap: str
    jitter: Duration


def specs(definition: Definition, app: str, when: When, arguments: str) -> list[Spec]:
    """One for each trigger. A DefinitionError names the option that is wrong."""
    if unknown := when.keys() - When.__annotations__.keys():
        raise DefinitionError(f"a schedule has no option {sorted(unknown)[0]!r}")
    triggers = _triggers(when, f"{app}.{definition.name}")
    return [schedule.check(_spec(definition, trigger, when, arguments)) for trigger in triggers]


def _spec(definition: Definition, trigger: Trigger, when: When, arguments: str) -> Spec:
    catch_up, most = _catch_up(when.get("catch_up", CatchUp.LAST.value))
    start, end = when.get("start"), when.get("end")
    window = when.get("window")
    return Spec(
        job=definition.name,
        trigger=trigger,
        tz=when.get("tz", "UTC"),
        arguments=arguments,
        queue=definition.queue,
        priority=definition.priority,
        start=None if start is None else instant(start, "start"),
        end=None if end is None else min(instant(end, "end"), FOR_EVER),
        excluded=dates(when.get("exclude", ()), "exclude", MOST_EXCLUDED),
        calendars=tuple(
            names.check(name, "calendars: a calendar's name")
            for name in _all(when.get("calendars", ()), "calendars", MOST_CALENDARS)
        ),
        catch_up=catch_up,
        catch_up_most=most,
        window_s=None if window is None else positive_seconds(window, "window"),
        overlap=_one_of(when.get("overlap", Overlap.SKIP.value), Overlap, "overlap"),
        jitter_s=seconds(when.get("jitter", 0), "jitter"),
        start_within_s=definition.start_within_s,
    )


def dates(values: Iterable[date | str], what: str, most: int) -> tuple[str, ...]:
    """Dates as sorted texts; refuses values that are not dates."""
    found = tuple(sorted(_day(day, what) for day in _all(values, what, most)))
    schedule.days(found, what)
    return found


def _triggers(when: When, seed: str) -> list[Trigger]:
    given = [name for name in _TRIGGERS if name in when]
    if not given:
        raise DefinitionError("give one of cron=, every=, after= and at=")
    for option, trigger in _ONLY_WITH.items():
        if option in when and trigger not in when:
            raise DefinitionError(f"{option}: means something only with {trigger}=")
    return [trigger for name in given for trigger in _triggers_of(name, when, seed)]


def _triggers_of(name: str, when: When, seed: str) -> list[Trigger]:
    match name:
        case "cron":
            return _crons(when, seed)
        case "every":
            period = _microseconds(when["every"], "every")
            return [Every(period, round(seconds(when.get("phase", 0), "phase") * MICROSECONDS))]
        case "after":
            return [After(_microseconds(when["after"], "after"))]
        case _:
            times = [when["at"]] if isinstance(when["at"], datetime) else _all(when["at"], "at", MOST_INSTANTS)
            return [At(tuple(sorted({instant(time, "at") for time in times})))]


def _crons(when: When, seed: str) -> list[Trigger]:
    texts = [when["cron"]] if isinstance(when["cron"], str) else _all(when["cron"], "cron", MOST_TRIGGERS)
    if not texts:
        raise DefinitionError("cron: there is no expression in the list")
    gap = _one_of(when.get("dst_gap", Gap.NEXT.value), Gap, "dst_gap")
    repeat = _one_of(when.get("dst_overlap", Repeat.FIRST.value), Repeat, "dst_overlap")
    for text in texts:
        if not isinstance(text, str):
            raise DefinitionError(f"cron: must be a text, not {text!r}")
    tidied = [" ".join(text.split()[:8]) if len(text) <= 1000 else text for text in texts]
    return [Cron(text, when.get("tz", "UTC"), gap, repeat, seed) for text in tidied]


def _catch_up(value: str | int) -> tuple[CatchUp, int]:
    if isinstance(value, int) and not isinstance(value, bool):
        if value == 0:
            return CatchUp.NONE, 1
        if not 1 <= value <= schedule.MOST_CAUGHT_UP:
            raise DefinitionError(f"catch_up: a number of ticks is between 0 and {schedule.MOST_CAUGHT_UP}")
        return CatchUp.ALL, value
    return _one_of(value, CatchUp, "catch_up"), 100


def _one_of(value: object, kind: type[E], what: str) -> E:
    choices = {member.value: member for member in kind}
    if not isinstance(value, str) or value not in choices:
        raise DefinitionError(f"{what}: must be one of {', '.join(choices)}, not {value!r}")
    return choices[value]


def _microseconds(value: Duration, what: str) -> int:
    return round(positive_seconds(value, what) * MICROSECONDS)


def _day(value: date | str, what: str) -> str:
    if isinstance(value, datetime) or not isinstance(value, date | str):
        raise DefinitionError(f"{what}: a date or a text such as '2026-12-24', not {value!r}")
    return value if isinstance(value, str) else value.isoformat()


def _all(values: object, what: str, most: int) -> list[Any]:
    """The values as a list. Reads at most `most` and one more: the caller's iterable may have no end."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise DefinitionError(f"{what}: must be a list, not {str(values)[:64]!r}")
    found = list(islice(values, most + 1))
    if len(found) > most:
        raise DefinitionError(f"{what}: at most {most:,}; {_INSTEAD.get(what, 'make several schedules')}")
    return found
