"""Ties a child process to its supervisor: a child ends with its supervisor and with its lease.

The kernel kills the child when its parent dies. If the parent died before the child asked the kernel for that, the pipe
from the supervisor ends, and the child ends itself. The supervisor also sends until when the lease holds: if the
supervisor stands still, its child lets go of its executions before other workers take over. If a job holds the
interpreter, so that the child cannot, the supervisor's spawner kills it.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import math
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from rota.clock import Clock

log = logging.getLogger("rota.engine")

DRAINED, RECYCLE, LEASE_LOST, ORPHANED, UNUSABLE, BLOCKED = 0, 75, 76, 77, 78, 79
"""Exit codes of a child. A job can end its process with any of them, so a child that leaves in order announces its code
first; an exit code that was not announced is a crash."""

# Messages to a child. The first one is its `Assignment`, in JSON.
DRAIN = b"drain"
FINISH = b"finish"
"""Claim nothing more, and end when the running attempts have ended by themselves."""
UNTIL = b"until "
"""Prefix of the end of the lease, by the monotonic clock."""
TROUBLE = b"trouble "
"""Prefix of the reason why the supervisor cannot renew the lease at the moment."""
# Messages from a child. The first one is its hello, in JSON.
LEAVING = b"leaving"
REPORT = b"blocked "
"""Prefix of the report of an attempt that blocks the event loop beyond its timeout."""
EXIT = b"exit "
"""Prefix of the exit code with which the child is about to leave."""
_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Asks the kernel to kill this process when `parent` dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(ORPHANED)


class Tether:
    """The child's ends of a pipe from the supervisor and a socket to it, for messages of one line each.

    They are separate, because asyncio drops data that it has received when a write to the same socket fails: an exit
    code that the child announced would be lost.
    """

    def __init__(self, words_fd: int, clock: Clock) -> None:
        self._words_fd = words_fd
        self._clock = clock
        self._pipe = _take_standard_input()
        self._poll = select.poll()
        self._poll.register(self._pipe, select.POLLIN)
        self._rest = b""

    def say(self, line: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # The supervisor is gone, which the reading thread sees as well.
            os.write(self._words_fd, line + b"\n")

    def announce(self, code: int) -> None:
        """Says with which code the process is about to exit: the supervisor takes any other end for a crash."""
        self.say(EXIT + str(code).encode())

    def leave(self, code: int) -> NoReturn:
        """Ends the process at once, from any thread."""
        self.announce(code)
        os._exit(code)

    def next(self, until: float = math.inf) -> bytes | None:
        """The next message; None if none has come until then. Ends the process if the supervisor is gone."""
        while b"\n" not in self._rest:
            left_s = until - self._clock.monotonic()
            if not self._poll.poll(None if until == math.inf else max(0, math.ceil(left_s * 1000))):
                return None
            piece = os.read(self._pipe, 65536)
            if not piece:
                os._exit(ORPHANED)
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line.strip()

    def follow(self, obey: Callable[[bytes], None], lease_s: float) -> None:
        """Starts a thread that calls `obey` with each command, and ends the process at the end of its lease."""
        threading.Thread(target=self._listen, args=(obey, lease_s), name="rota-tether", daemon=True).start()

    def _listen(self, obey: Callable[[bytes], None], lease_s: float) -> None:
        until, trouble = self._clock.monotonic() + lease_s, ""
        # Messages that have arrived are read first: this thread may not have had its turn for longer than the lease.
        while (line := self.next(until)) is not None:
            if line.startswith(UNTIL):
                until, trouble = float(line.removeprefix(UNTIL)), ""
            elif line.startswith(TROUBLE):
                trouble = line.removeprefix(TROUBLE).decode()
            else:
                obey(line)
        why = trouble or "the supervisor has not renewed it: it is stopped, or has no processor"
        log.error(
            "the lease of %g s has ended (%s): exiting. The executions return to their queues; no attempt or crash is "
            "counted",
            lease_s,
            why,
        )
        self.leave(LEASE_LOST)


def _take_standard_input() -> int:
    """Moves the supervisor's pipe off standard input: user code that reads it would swallow the messages."""
    pipe = os.dup(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    return pipe
