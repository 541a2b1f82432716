"""When a job runs by itself, as its author writes it; becomes the data of a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import TypedDict

from rota.domain import names, schedule
from rota.domain.duration import Duration, positive_seconds, seconds
from rota.domain.errors import DefinitionError
from rota.domain.job import Definition
from rota.domain.schedule import Busy, CatchUp, Spec
from rota.domain.ticks import Gap, Overlap
from rota.domain.trigger import After, At, Cron, Every, Trigger
from rota.sdk.options import instant

MICROSECONDS = 1_000_000


class When(TypedDict, total=False):
    """What `@app.job(…)` and `app.schedule(…)` take. One of the first four, or several crons."""

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
    """One for each trigger; refuses what cannot be meant, with the name of the field."""
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
        end=None if end is None else instant(end, "end"),
        excluded=tuple(sorted(_day(day) for day in when.get("exclude", ()))),
        calendars=tuple(names.check(name, "a calendar's name") for name in _texts(when.get("calendars", ()))),
        catch_up=catch_up,
        catch_up_most=most,
        window_s=None if window is None else positive_seconds(window, "window"),
        overlap=Busy(_one_of(when.get("overlap", Busy.SKIP.value), Busy, "overlap")),
        jitter_s=seconds(when.get("jitter", 0), "jitter"),
    )


def _triggers(when: When, seed: str) -> list[Trigger]:
    given = [name for name in ("cron", "every", "after", "at") if name in when]
    if len(given) != 1:
        raise DefinitionError("give one of cron=, every=, after= and at=" + (f", not {len(given)}" if given else ""))
    match given[0]:
        case "cron":
            texts = [when["cron"]] if isinstance(when["cron"], str) else list(when["cron"])
            if not texts:
                raise DefinitionError("cron: there is no expression in the list")
            gap = Gap(_one_of(when.get("dst_gap", Gap.NEXT.value), Gap, "dst_gap"))
            repeat = Overlap(_one_of(when.get("dst_overlap", Overlap.FIRST.value), Overlap, "dst_overlap"))
            return [_cron(text, when.get("tz", "UTC"), gap, repeat, seed) for text in texts]
        case "every":
            period = _microseconds(when["every"], "every")
            return [Every(period, round(seconds(when.get("phase", 0), "phase") * MICROSECONDS))]
        case "after":
            return [After(_microseconds(when["after"], "after"))]
        case _:
            times = [when["at"]] if isinstance(when["at"], datetime) else list(when["at"])
            return [At(tuple(sorted({instant(time, "at") for time in times})))]


def _cron(text: str, tz: str, gap: Gap, repeat: Overlap, seed: str) -> Cron:
    if not isinstance(text, str):
        raise DefinitionError(f"cron: must be a text, not {text!r}")
    return Cron(" ".join(text.split()[:8]) if len(text) <= 1000 else text, tz, gap, repeat, seed)


def _catch_up(value: str | int) -> tuple[CatchUp, int]:
    if isinstance(value, int) and not isinstance(value, bool):
        if value == 0:
            return CatchUp.NONE, 1
        if not 1 <= value <= schedule.MOST_CAUGHT_UP:
            raise DefinitionError(f"catch_up: a number of ticks is between 0 and {schedule.MOST_CAUGHT_UP}")
        return CatchUp.ALL, value
    return CatchUp(_one_of(value, CatchUp, "catch_up")), 100


def _one_of(value: object, kind: type[Busy | CatchUp | Gap | Overlap], what: str) -> str:
    choices = [member.value for member in kind]
    if value not in choices:
        raise DefinitionError(f"{what}: must be one of {', '.join(choices)}, not {value!r}")
    return str(value)


def _microseconds(value: Duration, what: str) -> int:
    return round(positive_seconds(value, what) * MICROSECONDS)


def _day(value: date | str) -> str:
    if isinstance(value, datetime) or not isinstance(value, date | str):
        raise DefinitionError(f"exclude: a date or a text such as '2026-12-24', not {value!r}")
    return value if isinstance(value, str) else value.isoformat()


def _texts(values: Iterable[str]) -> list[str]:
    if isinstance(values, str):
        raise DefinitionError(f"calendars: a list of names, such as [{values[:64]!r}], not one text")
    return list(values)
