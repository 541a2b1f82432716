"""The one place where tests wait for something that sends no signal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE_S = 30.0
"""Only a bound for hangs: on a busy machine everything may take long, so no test asserts on less."""


def eventually(condition: Callable[[], T], timeout_s: float = PATIENCE_S, what: str = "") -> T:
    """The first true answer of `condition`; fails the test if none comes in time."""
    give_up_at = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= give_up_at:
            raise AssertionError(f"{what or 'the condition'} did not come true within {timeout_s:g} s: {answer!r}")
        time.sleep(0.01)  # sleep: other processes write files and rows; nothing tells us when they do.
