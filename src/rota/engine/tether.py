"""What ties a child process to its supervisor: neither outlives the other's intent.

The kernel kills the child when its parent dies; should that be missed (the parent died before we asked for it), the
pipe from the supervisor ends, and the child ends itself. Commands come down the same pipe, a line each.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable

DRAINED, RECYCLE, LEASE_LOST, ORPHANED, UNUSABLE, BLOCKED = 0, 75, 76, 77, 78, 79
"""Exit codes by which a child tells its supervisor why it ended."""

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Asks the kernel to kill this process when `parent` dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(ORPHANED)


def follow(fd: int, command: Callable[[str], None]) -> threading.Thread:
    """Calls `command` for each line from the supervisor; ends the process at the end of the pipe."""

    def listen() -> None:
        with os.fdopen(fd, "r", closefd=False) as pipe:
            for line in pipe:
                command(line.strip())
        os._exit(ORPHANED)

    thread = threading.Thread(target=listen, name="rota-tether", daemon=True)
    thread.start()
    return thread
