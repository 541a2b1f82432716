"""Durations as people write them: `30`, `0.5`, `"30s"`, `"1h30m"`, `"250ms"`."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from rota.domain.errors import DefinitionError

Duration = float | int | str | timedelta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", re.ASCII)
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))+", re.ASCII)
_SHORT_S = 10
"""Shorter durations have a decimal."""
_DAYS_ALONE = 7
"""From so many days on, hours do not matter."""
LONGEST_S = 100 * 365 * 86400.0


def seconds(value: Duration, what: str = "duration") -> float:
    """The duration in seconds; refuses negative, infinite and malformed values."""
    try:
        result = _seconds(value, what)
    except OverflowError:
        raise DefinitionError(f"{what} must be between 0 and 100 years, not longer") from None
    if not math.isfinite(result) or result < 0 or result > LONGEST_S:
        raise DefinitionError(f"{what} must be between 0 and 100 years, not {value!r}")
    return result


def positive_seconds(value: Duration, what: str) -> float:
    result = seconds(value, what)
    if result == 0:
        raise DefinitionError(f"{what} must be longer than zero")
    return result


def _seconds(value: Duration, what: str) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool):
        raise DefinitionError(f"{what} must be a duration, not {value!r}")
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and len(value) <= 64 and _WHOLE.fullmatch(value.strip()):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))
    raise DefinitionError(f"{what} must be seconds or text such as '30s', '5m', '1h30m', '2d', not {str(value)[:64]!r}")


def words(value_s: float) -> str:
    """A duration for people, as the dashboard shows it: `182 ms`, `4.2 s`, `42 s`, `1 h 05 m`, `14 d`."""
    if value_s < 1:
        return f"{value_s * 1000:.0f} ms"
    if value_s < _SHORT_S:
        return f"{value_s:.1f}".removesuffix(".0") + " s"
    (number, unit), *less = _parts(value_s)
    if not less or (unit == "d" and number >= _DAYS_ALONE):
        return f"{number} {unit}"
    return f"{number} {unit} {less[0][0]:02} {less[0][1]}"


def written(value_s: float) -> str:
    """A duration as users write it, in its two largest units: `90s` is `1m30s`."""
    if value_s < 1:
        return f"{value_s * 1000:.0f}ms"
    if value_s < _UNITS["m"]:
        return f"{value_s:g}s"
    return "".join(f"{number}{unit}" for number, unit in _parts(value_s))


def _parts(value_s: float) -> list[tuple[int, str]]:
    """The largest unit, and the next one if it is not zero."""
    whole = int(value_s)
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s")]
    first = next(i for i, (number, _) in enumerate(parts) if number)
    return [part for part in parts[first : first + 2] if part[0]]
