"""Sizes as people write them: `1048576`, `"512MB"`, `"1.5GB"`. A kilobyte has 1,024 bytes."""

from __future__ import annotations

import re

from rota.domain.errors import DefinitionError

Size = int | str
_WHOLE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB)", re.ASCII | re.IGNORECASE)
_UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
LARGEST = 2**50


def size(value: Size, what: str) -> int:
    """The number of bytes; refuses values that are not a positive size."""
    found = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) and len(value) <= 64 else None
    if found is not None:
        result = round(float(found[1]) * _UNITS[found[2].upper()])
    elif isinstance(value, int) and not isinstance(value, bool):
        result = value
    else:
        raise DefinitionError(f"{what} must be bytes or text such as '512MB', '2GB', not {str(value)[:64]!r}")
    if not 0 < result <= LARGEST:
        raise DefinitionError(f"{what} must be more than nothing and at most 1024TB, not {value!r}")
    return result


def words(number: int) -> str:
    """A size for people."""
    for unit in ("TB", "GB", "MB", "KB"):
        if number >= _UNITS[unit]:
            return f"{number / _UNITS[unit]:,.1f} {unit}".replace(".0 ", " ")
    return f"{number} B"
