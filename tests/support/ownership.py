"""Which test owns a process or a database, and what a test has left running.

A process or a database that a test starts belongs to that test. If a fixture of a module or of the whole run starts it,
it belongs to that fixture.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

PATIENCE_S = 10.0

_owned: list[subprocess.Popen[Any]] = []
_shared_depth = 0


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """What starts inside the block outlives the test."""
    global _shared_depth
    _shared_depth += 1
    try:
        yield
    finally:
        _shared_depth -= 1


def is_shared() -> bool:
    return _shared_depth > 0


def watch_processes() -> None:
    """Records each process that is started from now on; asyncio uses `Popen`, too."""
    start = subprocess.Popen.__init__

    def recorded(process: subprocess.Popen[Any], *args: Any, **kwargs: Any) -> None:
        start(process, *args, **kwargs)
        if not is_shared():
            _owned.append(process)

    subprocess.Popen.__init__ = recorded  # type: ignore[assignment, method-assign]


def started() -> list[str]:
    """The processes that the current test has started."""
    return [_described(process) for process in _owned]


def end_leftovers() -> list[str]:
    """Ends the processes that the current test has not ended, and describes them."""
    left = [process for process in _owned if process.poll() is None]
    _owned.clear()
    for process in left:
        process.kill()
        process.wait(PATIENCE_S)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
    return [_described(process) for process in left]


def drop_leftovers() -> list[str]:
    """Drops the files and sockets that only the traceback of a failed test keeps open, and describes them.

    Otherwise their ResourceWarnings would appear during a later test.
    """
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        if hasattr(sys, name):
            delattr(sys, name)
    found: list[str] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda about: found.append(repr(about.object))
    try:
        gc.collect()
    finally:
        sys.unraisablehook = before
    return found


def _described(process: subprocess.Popen[Any]) -> str:
    words = process.args if isinstance(process.args, list | tuple) else [process.args]
    return f"process {process.pid} ({' '.join(str(word) for word in words)[:200]})"
