"""What ties a child process to its supervisor: neither outlives the other's intent.

The kernel kills the child when its parent dies; should that be missed (the parent died before we asked for it), the
pipe from the supervisor ends, and the child ends itself. Commands come down the same pipe, a line each, and so does
until when the lease holds: if the supervisor stands still, its child lets go by itself before others take over. If it
cannot, for a job holds the interpreter, the dead man's switch of the supervisor ends it.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import select
import signal
import threading
from collections.abc import Callable

from rota.clock import SystemClock

log = logging.getLogger("rota.engine")

DRAINED, RECYCLE, LEASE_LOST, ORPHANED, UNUSABLE, BLOCKED = 0, 75, 76, 77, 78, 79
"""Exit codes of a child. A job can end its process with any of them, so a child that leaves in order announces its code
on its pipe first; an exit code that was not announced is a crash."""

UNTIL = "until "
"""Before the end of the lease, as a line from the supervisor."""
TROUBLE = "trouble "
"""Before the reason why the supervisor cannot renew the lease at the moment."""
_PR_SET_PDEATHSIG = 1
_clock = SystemClock()


def die_with(parent: int) -> None:
    """Asks the kernel to kill this process when `parent` dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(ORPHANED)


def follow(
    fd: int, command: Callable[[str], None], lease_s: float, leave: Callable[[int], object] = os._exit
) -> threading.Thread:
    """Calls `command` for each line from the supervisor. Ends the process at the end of the pipe, and with
    `leave(LEASE_LOST)` at the end of the lease."""

    def listen() -> None:
        lines, until, trouble = _Lines(fd), _clock.monotonic() + lease_s, ""
        # What was said before is heard first: this thread may not have had its turn for longer than the lease.
        while (line := lines.next(until)) is not None:
            if line.startswith(UNTIL):
                until, trouble = float(line.removeprefix(UNTIL)), ""
            elif line.startswith(TROUBLE):
                trouble = line.removeprefix(TROUBLE)
            else:
                command(line)
        why = trouble or "the supervisor has not renewed it: it is stopped, or has no processor"
        log.error("the lease of %g s has ended (%s): letting go of everything, uncharged", lease_s, why)
        leave(LEASE_LOST)

    thread = threading.Thread(target=listen, name="rota-tether", daemon=True)
    thread.start()
    return thread


class _Lines:
    """What comes down the pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._rest = b""

    def next(self, until: float) -> str | None:
        """The next line; None if none has come until then. Ends the process at the end of the pipe."""
        while b"\n" not in self._rest:
            left_s = until - _clock.monotonic()
            if not self._poll.poll(max(0, math.ceil(left_s * 1000))):
                return None
            piece = os.read(self._fd, 65536)
            if not piece:
                os._exit(ORPHANED)
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line.strip().decode()
