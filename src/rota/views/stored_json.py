"""JSON of users as it is stored: arguments, results, errors, tags. The database may hold any text there."""

from __future__ import annotations

import json
import math
from typing import Any

MANY_BRACKETS = 200


def decoded(stored: str | None) -> Any:
    """The value, or the text itself if it cannot be read or could not be written as JSON again."""
    if stored is None:
        return None
    try:
        value = json.loads(stored, parse_float=_finite, parse_constant=_finite)
        if stored.count("[") + stored.count("{") > MANY_BRACKETS:
            json.dumps(value, indent=2)  # A value that can be read may still be nested too deeply to be written.
        return value
    except (ValueError, RecursionError):
        return stored


def error_text(error: Any) -> str | None:
    """Type and message of a decoded error; None without an error."""
    if not error:
        return None
    if isinstance(error, dict) and {"type", "message"} <= error.keys():
        return f"{error['type']}: {str(error['message']).strip()}"
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def _finite(number: str) -> float:
    """JSON has no infinity, and reading 1e5000 gives one."""
    if not math.isfinite(value := float(number)):
        raise ValueError(number)
    return value
