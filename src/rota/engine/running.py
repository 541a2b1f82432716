"""How Rota's processes run their event loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
SWITCH_INTERVAL_S = 0.0005


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` to its end, on uvloop where there is one."""
    # The store's thread and the loop pass the interpreter to each other all the time, and must win it back quickly
    # from code that computes.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # lazy: only where it is installed, which is everywhere but Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
