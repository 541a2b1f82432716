"""Triggers in words, for people who do not read cron."""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain import cron, duration
from rota.domain.cron import Cron as Expression
from rota.domain.cron_field import Field
from rota.domain.trigger import After, At, Cron, Every, Trigger

MICROSECONDS = 1_000_000
MOST_TIMES = 6
_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def explain(trigger: Trigger) -> str:
    """When it fires, as one would say it."""
    match trigger:
        case Cron(expression=expression, tz=tz, seed=seed):
            return f"{_cron(cron.parse(expression, seed))}, in {tz}"
        case Every(period=period, phase=phase):
            shift = f", {_length(phase)} after the full interval" if phase else ""
            return f"every {_length(period)}{shift}"
        case After(delay=delay):
            return f"{_length(delay)} after the end of the run before"
        case At(instants=instants):
            return "once" if len(instants) == 1 else f"once at each of {len(instants)} instants"


def _cron(expression: Expression) -> str:
    return " ".join(part for part in (_time(expression), _days(expression), _months(expression)) if part)


def _time(expression: Expression) -> str:
    hours, minutes, seconds = (_numbers(field) for field in (expression.hour, expression.minute, expression.second))
    if len(hours) * len(minutes) * len(seconds) <= MOST_TIMES:
        shown = "%02d:%02d" if seconds == [0] else "%02d:%02d:%02d"
        width = 2 if seconds == [0] else 3
        times = [shown % (hour, minute, second)[:width] for hour in hours for minute in minutes for second in seconds]
        return f"at {_list(times)}"
    second = "" if seconds == [0] else f"at {_unit(seconds, 60, 'second')} of "
    minute = _unit(minutes, 60, "minute")
    if len(hours) == 24:
        of_hour = "" if len(minutes) == 60 or minute.startswith("every") else " of every hour"
    else:
        of_hour = f" of {_unit(hours, 24, 'hour')}"
    start = "" if minute.startswith("every") and not second else "at "
    return f"{second}{'' if second else start}{minute}{of_hour}"


def _unit(numbers: Sequence[int], span: int, name: str) -> str:
    if len(numbers) == span:
        return f"every {name}"
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 0
    if numbers[0] == 0 and step > 1 and list(numbers) == list(range(0, span, step)):
        return f"every {step} {name}s" if span % step == 0 else f"every {step} {name}s from 0 on"
    return f"{name} {_list(_runs(numbers))}" if len(numbers) == 1 else f"{name}s {_list(_runs(numbers))}"


def _days(expression: Expression) -> str:
    by_day, by_weekday = _month_days(expression.day), _weekdays(expression.weekday)
    if not by_day or not by_weekday:
        return f"on {by_day or by_weekday}" if by_day or by_weekday else ""
    both = expression.day.starts_with_star or expression.weekday.starts_with_star
    return f"on {by_day}{' if it is ' if both else ' and on '}{by_weekday}"


def _month_days(field: Field) -> str:
    numbers = _numbers(field)
    parts = [] if not numbers or len(numbers) == 31 else [f"day {_list(_runs(numbers))}"]
    parts += ["the last day" if not offset else f"{offset} days before the last" for offset in sorted(field.from_last)]
    parts += ["the last weekday"] if field.last_weekday else []
    parts += [f"the weekday nearest to day {day}" for day in sorted(field.nearest)]
    return f"{_list(parts)} of the month" if parts else ""


def _weekdays(field: Field) -> str:
    numbers = _numbers(field)
    parts = [] if len(numbers) == 7 else _runs(numbers, _DAYS)
    parts += [f"the {_ORDINALS[place - 1]} {_DAYS[day]} of the month" for day, place in sorted(field.nth)]
    parts += [f"the last {_DAYS[day]} of the month" for day in sorted(field.last)]
    return _list(parts)


def _months(expression: Expression) -> str:
    numbers = _numbers(expression.month)
    return "" if len(numbers) == 12 else f"in {_list(_runs(numbers, ['', *_MONTHS]))}"


def _numbers(field: Field) -> list[int]:
    return [number for number in range(field.numbers.bit_length()) if field.numbers >> number & 1]


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


def _list(words: Sequence[str]) -> str:
    return " and ".join(([", ".join(words[:-1])] if len(words) > 1 else []) + list(words[-1:]))


def _length(microseconds: int) -> str:
    return duration.words(microseconds / MICROSECONDS).replace(".0s", "s")
