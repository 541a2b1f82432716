"""Rates and delays from what was observed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

POLL_S = 0.02
RAMP = 0.1


class Stalled(Exception):
    """Something did not come within its time."""


def rate(count: Callable[[], int], total: int, limit_s: float) -> float:
    """How much `count` grows per second until it reaches `total`; the first tenth is the ramp and is left out."""
    began = time.perf_counter()
    start = (began, 0)
    while True:
        now, done = time.perf_counter(), count()
        if start[1] == 0 and RAMP * total <= done < total:
            start = (now, done)
        if done >= total:
            return (done - start[1]) / (now - start[0])
        if now - began > limit_s:
            raise Stalled(f"{done} of {total} done after {limit_s:g} s")
        time.sleep(POLL_S)


def until(condition: Callable[[], bool], what: str, limit_s: float) -> None:
    """Waits for something that is cheap to ask for."""
    give_up_at = time.perf_counter() + limit_s
    while not condition():
        if time.perf_counter() > give_up_at:
            raise Stalled(f"{what}: not after {limit_s:g} s")
        time.sleep(POLL_S)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
