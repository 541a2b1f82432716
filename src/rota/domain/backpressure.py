"""When a queue is full, and how long a caller should wait before trying again."""

from __future__ import annotations

SHORTEST_S, LONGEST_S = 1.0, 60.0


def admits(depth: int, arriving: int, max_depth: int | None) -> bool:
    return max_depth is None or depth + arriving <= max_depth


def retry_after_s(oldest_wait_s: float) -> float:
    """The queue drains in about the time that its oldest execution has waited. A twentieth of that frees some room."""
    return min(LONGEST_S, max(SHORTEST_S, round(oldest_wait_s / 20, 1)))
