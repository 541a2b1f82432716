"""Triggers in words, for people who do not read cron."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from rota.domain import cron
from rota.domain.cron import Cron as Expression
from rota.domain.cron_field import DAYS, MONTHS, Field
from rota.domain.instant import MICROSECONDS
from rota.domain.trigger import After, At, Cron, Every, Trigger

MOST_TIMES = 6
SHORTEST_ROW = 5
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60))


def explain(trigger: Trigger) -> str:
    """When it fires, in a sentence."""
    match trigger:
        case Cron(expression=expression, tz=tz, seed=seed):
            return f"{_cron(cron.parse(expression, seed))}, in {tz}"
        case Every(period=period, phase=phase):
            shift = f", {_length(phase)} after the full interval" if phase else ""
            return f"every {_length(period)}{shift}"
        case After(delay=delay):
            return f"{_length(delay)} after the end of the run before"
        case At(instants=instants):
            first, last = _instant(min(instants)), _instant(max(instants))
            return f"once at {first}" if len(instants) == 1 else f"at {len(instants)} instants from {first} to {last}"


def _cron(expression: Expression) -> str:
    time, days, months = _time(expression), _days(expression), _months(expression)
    if not days and time[-1].isdigit() and time.startswith("at "):
        days = "every day"
    if months and days.count(" of the month") == 1 and days.endswith(" of the month"):
        return f"{time} {days.removesuffix('the month')}{months}"
    if months and " and on " in days:
        return f"{time} {days}, but only in {months}"
    return " ".join(part for part in (time, days, months and f"in {months}") if part)


def _time(expression: Expression) -> str:
    hours, minutes, seconds = expression.hour.numbers, expression.minute.numbers, expression.second.numbers
    if len(hours) * len(minutes) * len(seconds) <= MOST_TIMES:
        times = [f"{hour:02d}:{minute:02d}:{second:02d}" for hour in hours for minute in minutes for second in seconds]
        return f"at {_list([time.removesuffix(':00') if seconds == (0,) else time for time in times])}"
    if seconds == minutes == (0,) and (step := _step(hours)):
        often = "every hour" if step == 1 else f"every {step} hours"
        is_whole_day = hours[0] == 0 and len(hours) * step == 24
        return often if is_whole_day else f"{often} from {hours[0]:02d}:00 to {hours[-1]:02d}:00"
    units = [(minutes, 60, "minute"), (hours, 24, "hour")]
    if seconds != (0,):
        units.insert(0, (seconds, 60, "second"))
    said = [_unit(*units[0], is_smallest=True), *(_unit(*unit) for unit in units[1:])]
    while len(said) > 1 and said[-1] in ("every hour", "every minute"):
        if not said[-2].startswith("every") or " from " in said[-2]:
            break
        said.pop()  # "Every minute of every hour" is "every minute".
    return f"{'' if said[0].startswith('every') else 'at '}{' of '.join(said)}"


def _unit(numbers: Sequence[int], span: int, name: str, *, is_smallest: bool = False) -> str:
    """The numbers of a unit. The smallest unit has a rhythm ("every 5 minutes"), larger ones a place ("every 5th")."""
    if len(numbers) == span:
        return f"every {name}"
    step = _step(numbers)
    rhythm = f"every {step} {name}s" if is_smallest else f"every {_nth(step)} {name}"
    is_even = numbers[0] == 0 and step * len(numbers) == span
    if step > 1 and is_even and (is_smallest or len(numbers) > 2):
        return rhythm
    if step > 1 and len(numbers) >= SHORTEST_ROW:
        return f"{rhythm} from {f'{name} ' if is_smallest else ''}{numbers[0]} to {numbers[-1]}"
    return f"{name}{'s' if len(numbers) > 1 else ''} {_list(_runs(numbers))}"


def _step(numbers: Sequence[int]) -> int:
    """The distance between each two neighbours; 0 if it differs."""
    steps = {after - before for before, after in pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else 0


def _nth(number: int) -> str:
    return f"{number}{'th' if number // 10 % 10 == 1 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _days(expression: Expression) -> str:
    must_fit_both = expression.day.starts_with_star or expression.weekday.starts_with_star
    by_day, by_weekday = _month_days(expression.day), _weekdays(expression.weekday, "and")
    if not must_fit_both:  # Either field will do, so it is every day if one of them is.
        return f"on {by_day} and on {by_weekday}" if by_day and by_weekday else ""
    if by_day and by_weekday:
        return f"on {by_day} if it is {_weekdays(expression.weekday, 'or')}"
    return f"on {by_day or by_weekday}" if by_day or by_weekday else ""


def _month_days(field: Field) -> str:
    """Empty if it is every day."""
    numbers = field.numbers
    if len(numbers) == 31:
        return ""
    parts = [_unit(numbers, 31, "day")] if numbers else []
    parts += [_from_last(offset) for offset in sorted(field.from_last)]
    parts += ["the last weekday (Monday to Friday)"] if 0 in field.nearest_from_last else []
    nearest = [f"day {day}" for day in sorted(field.nearest)]
    nearest += [_from_last(offset) for offset in sorted(field.nearest_from_last - {0})]
    if nearest:
        parts.append(f"the weekday (Monday to Friday) nearest to {_list(nearest)}")
    return f"{_list(parts)} of the month"


def _from_last(offset: int) -> str:
    return {0: "the last day", 1: "the day before the last"}.get(offset, f"the day {offset} days before the last")


def _weekdays(field: Field, word: str) -> str:
    """Empty if it is every day."""
    numbers = field.numbers
    if len(numbers) == 7:
        return ""
    if 0 in numbers and 6 in numbers:  # Then Sunday ends the week.
        numbers = (*numbers[1:], 7)
    parts = _runs(numbers, (*DAYS, DAYS[0]))
    special = [f"the {_ORDINALS[place - 1]} {DAYS[day]}" for day, place in sorted(field.nth)]
    special += [f"the last {DAYS[day]}" for day in sorted(field.last)]
    return _list([*([f"{_list(special, word)} of the month"] if special else []), *parts], word)


def _months(expression: Expression) -> str:
    numbers = expression.month.numbers
    return "" if len(numbers) == 12 else _list(_runs(numbers, ("", *MONTHS)))


def _runs(numbers: Sequence[int], names: Sequence[str] | None = None) -> list[str]:
    """Three or more in a row as a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    show = [str(number) for number in range(60)] if names is None else names
    return [
        word
        for run in runs
        for word in ([f"{show[run[0]]} to {show[run[-1]]}"] if len(run) > 2 else [show[number] for number in run])
    ]


def _list(words: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join(([", ".join(words[:-1])] if len(words) > 1 else []) + list(words[-1:]))


def _instant(at: int) -> str:
    return f"{datetime.fromtimestamp(at // MICROSECONDS, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _length(microseconds: int) -> str:
    """The exact length, so that different intervals have different words."""
    rest, parts = microseconds, []
    for unit, size in _UNITS:
        number, rest = divmod(rest, size * MICROSECONDS)
        parts += [f"{number} {unit}"] if number else []
    if rest or not parts:
        parts.append(f"{rest // MICROSECONDS}.{rest % MICROSECONDS:06d}".rstrip("0").rstrip(".") + " s")
    return " ".join(parts)
