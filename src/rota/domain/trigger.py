"""Triggers: the rule that makes the ticks of a schedule. Instants are microseconds since 1970 UTC, as everywhere."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from rota.domain import cron, ticks
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.ticks import Gap, Repeat, Tick
from rota.domain.zone import Zone, zone

SHORTEST = MICROSECONDS
MOST_INSTANTS = 1000
LAST_YEAR = 8999


class Cron(msgspec.Struct, frozen=True, tag="cron", tag_field="kind"):
    """A cron expression in a zone. `seed` decides what `H` stands for."""

    expression: str
    tz: str = "UTC"
    gap: Gap = Gap.NEXT
    repeat: Repeat = Repeat.FIRST
    seed: str = ""


class Every(msgspec.Struct, frozen=True, tag="every", tag_field="kind"):
    """At a fixed rate: at `phase` after midnight of 1 January 1970 UTC and every `period` from there."""

    period: int
    phase: int = 0


class After(msgspec.Struct, frozen=True, tag="after", tag_field="kind"):
    """With a fixed delay after the end of the execution before."""

    delay: int


class At(msgspec.Struct, frozen=True, tag="at", tag_field="kind"):
    """Once at each of these instants."""

    instants: tuple[int, ...]


Trigger = Cron | Every | After | At


def check(trigger: Trigger) -> None:
    """Refuses a trigger that cannot fire, with a DefinitionError that names the field."""
    match trigger:
        case Cron():
            if not isinstance(trigger.expression, str):
                raise DefinitionError(f"cron: must be a text, not {type(trigger.expression).__name__}")
            _cron(trigger.expression, trigger.seed)
            zone(trigger.tz)
        case Every(period=period, phase=phase):
            if period < SHORTEST:
                raise DefinitionError("every: must be a second or longer")
            if not 0 <= phase < period:
                raise DefinitionError("phase: must be shorter than the interval")
        case After(delay=delay):
            if delay < SHORTEST:
                raise DefinitionError("after: must be a second or longer")
        case At(instants=instants):
            if not 0 < len(instants) <= MOST_INSTANTS:
                raise DefinitionError(f"at: must have between 1 and {MOST_INSTANTS} instants, not {len(instants)}")
            for instant in instants:
                check_instant("at", instant)


def check_instant(name: str, instant: int | None, last_year: int = LAST_YEAR) -> None:
    """Refuses an instant before 1970, or so late that the ticks behind it would have no date."""
    latest = datetime(last_year, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    if instant is not None and not 0 <= instant // MICROSECONDS <= latest:
        raise DefinitionError(f"{name}: must be between the years 1970 and {last_year}")


def first(trigger: Trigger, after: int, until: int | None = None) -> Tick | None:
    """The first nominal tick behind `after`, and not behind `until`. A fixed delay has none of its own."""
    found = _first(trigger, after)
    return None if found is None or (until is not None and found.at > until) else found


@lru_cache(maxsize=65_536)
def _first(trigger: Trigger, after: int) -> Tick | None:
    """Cached, because many schedules have the same trigger."""
    match trigger:
        case Cron():
            found = next(ticks.ticks(*parts(trigger), after // MICROSECONDS, trigger.repeat), None)
            return None if found is None else _in_microseconds(found)
        case Every(period=period, phase=phase):
            return Tick(after + period - (after - phase) % period)
        case At(instants=instants):
            return next((Tick(instant) for instant in sorted(instants) if instant > after), None)
        case After():
            return None


def last(trigger: Trigger, after: int, until: int) -> Tick | None:
    """The last nominal tick in (after, until]."""
    match trigger:
        case Cron():
            low, high = after // MICROSECONDS, until // MICROSECONDS
            found = ticks.last(*parts(trigger), low, high, trigger.repeat)
            return None if found is None else _in_microseconds(found)
        case Every(period=period, phase=phase):
            at = until - (until - phase) % period
            return Tick(at) if at > after else None
        case At(instants=instants):
            return max((Tick(instant) for instant in instants if after < instant <= until), default=None)
        case After():
            return None


def count(trigger: Trigger, after: int, until: int) -> int:
    """How many nominal ticks there are in (after, until], without making each of them."""
    if until <= after:
        return 0
    match trigger:
        case Cron():
            return ticks.count(*parts(trigger), after // MICROSECONDS, until // MICROSECONDS, trigger.repeat)
        case Every(period=period, phase=phase):
            return (until - phase) // period - (after - phase) // period
        case At(instants=instants):
            return sum(after < instant <= until for instant in set(instants))
        case After():
            return 0


def gaps(trigger: Cron, after: int, until: int) -> list[Tick]:
    """The ticks in (after, until] whose local time does not exist, because the clock was set forward."""
    found = ticks.gaps(*parts(trigger), after // MICROSECONDS, until // MICROSECONDS, trigger.repeat)
    return [_in_microseconds(tick) for tick in found]


def parts(trigger: Cron) -> tuple[cron.Cron, Zone]:
    """The parsed expression and zone; each text is parsed once."""
    return _cron(trigger.expression, trigger.seed), zone(trigger.tz)


def _in_microseconds(tick: Tick) -> Tick:
    return Tick(tick.at * MICROSECONDS, tick.in_gap)


@lru_cache(maxsize=65_536)
def _cron(expression: str, seed: str) -> cron.Cron:
    # Without an H the seed makes no difference, so all jobs share one entry.
    return cron.parse(expression, seed) if "h" in expression.lower() or not seed else _cron(expression, "")
