"""When a queue will be empty, from how many arrive and how many end."""

from __future__ import annotations

from enum import StrEnum

import msgspec

AT_ONCE_S = 5.0
"""A queue with at most this many seconds of work counts as empty."""


class Outlook(StrEnum):
    """`never`: no live worker serves it. `growing`: more arrive than end. `unknown`: no rate says when it is empty."""

    NOW = "now"
    EMPTIES = "empties"
    GROWING = "growing"
    UNKNOWN = "unknown"
    NEVER = "never"
    PAUSED = "paused"


class Forecast(msgspec.Struct, frozen=True):
    """`empty_in_s` is None if the queue will not be empty. `if_resumed_s` is for a paused queue, if a rate is known."""

    outlook: Outlook
    empty_in_s: float | None = None
    if_resumed_s: float | None = None


def forecast(
    queued: int, in_per_s: float, out_per_s: float | None, peak_per_s: float, *, is_paused: bool, is_served: bool
) -> Forecast:
    """`out_per_s` is None if it is not known; `peak_per_s` is the fastest that executions have ended lately."""
    if is_paused:
        rate = peak_per_s - in_per_s
        return Forecast(Outlook.PAUSED, None, round(queued / rate, 1) if rate > 0 and queued else None)
    if not queued:
        return Forecast(Outlook.NOW, 0.0)
    if not is_served:
        return Forecast(Outlook.NEVER)
    if out_per_s is None:
        return Forecast(Outlook.UNKNOWN)
    if queued <= AT_ONCE_S * out_per_s:
        return Forecast(Outlook.NOW, round(queued / out_per_s, 1))
    if out_per_s <= in_per_s:
        return Forecast(Outlook.GROWING if in_per_s > out_per_s else Outlook.UNKNOWN)
    return Forecast(Outlook.EMPTIES, round(queued / (out_per_s - in_per_s), 1))
