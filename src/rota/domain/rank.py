"""The order of a queue as one number: the lowest rank is claimed first.

Every policy is a sort key made from the instant at which an execution becomes due, so one index serves them all.
Under `priority` each level is worth a fixed head start, so waiting work ages: an old `low` overtakes a young
`high` in the end, and nothing starves.
"""

from __future__ import annotations

from enum import StrEnum

from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS

LEVELS = {"high": 10, "normal": 0, "low": -10}
LOWEST, HIGHEST = -100, 100
HEAD_START = 60 * MICROSECONDS
"""Microseconds of waiting that one level of priority outweighs."""


class Policy(StrEnum):
    """How a queue orders its ready executions."""

    FIFO = "fifo"
    PRIORITY = "priority"


def rank(policy: Policy, due_at: int, priority: int) -> int:
    """The sort key of an execution that became due at `due_at`."""
    match policy:
        case Policy.FIFO:
            return due_at
        case Policy.PRIORITY:
            return due_at - priority * HEAD_START


def level(value: int | str) -> int:
    """The number behind a priority given by name or as a number."""
    if isinstance(value, str):
        if value in LEVELS:
            return LEVELS[value]
        raise DefinitionError(f"priority must be one of {', '.join(LEVELS)} or a number, not {value!r}")
    if isinstance(value, bool) or not isinstance(value, int) or not LOWEST <= value <= HIGHEST:
        raise DefinitionError(f"priority must be between {LOWEST} and {HIGHEST}, not {value!r}")
    return value
