"""One body for `with` and `async with`: a coroutine that talks to psycopg's sync or to its async connections.

The two kinds have the same methods, and only the async ones return awaitables. `awaited` takes either answer. On a sync
connection such a coroutine never suspends, so `run_sync` can run it to its end without an event loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def awaited(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("a coroutine on sync connections has suspended")
