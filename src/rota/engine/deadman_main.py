"""The dead man's switch: a small process beside a supervisor that ends worker processes whose lease has run out.

A worker process lets go by itself when nobody renews its lease. It cannot while a job holds the interpreter, and then
its supervisor ends it; but that may stand still as well. This process runs no code of users, so nothing holds it up.
A timer of the kernel in the worker process would not do: whoever holds the interpreter keeps it from being set anew.

Down the pipe comes a line whenever a lease holds for longer: the number of the process, and until when it may live. It
is run by its path, without the package, and ends with the pipe.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or __name__ != "__main__":
    from rota.clock import Clock, SystemClock
else:
    # Last, so that no neighbour takes the place of a module of the standard library.
    sys.path.append(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120
    from clock import SystemClock


class Switch:
    """The processes that may live, each until its time."""

    def __init__(self, pipe: int, clock: Clock) -> None:
        self._pipe = pipe
        self._clock = clock
        self._rest = b""
        self._handles: dict[int, int] = {}
        self._until: dict[int, float] = {}
        self._poll = select.poll()
        self._poll.register(pipe, select.POLLIN)

    def run(self) -> None:
        """Until the pipe ends. What was said before is heard first: we may have been stopped for a while."""
        while True:
            ready = [fd for fd, _ in self._poll.poll(self._left_ms())]
            if self._pipe in ready and not self._hear():
                return
            if not ready:
                self._end_late()
            for pid, handle in list(self._handles.items()):
                if handle in ready:
                    self._forget(pid)  # It has ended.

    def _left_ms(self) -> int | None:
        if not self._until:
            return None
        return max(0, math.ceil((min(self._until.values()) - self._clock.monotonic()) * 1000))

    def _hear(self) -> bool:
        """Whether there may be more to hear."""
        data = os.read(self._pipe, 65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            pid, until = line.split()
            self._hold(int(pid), float(until))
        return bool(data)

    def _hold(self, pid: int, until: float) -> None:
        if pid not in self._handles:
            try:
                self._handles[pid] = os.pidfd_open(pid)
            except OSError:
                return  # It is gone, or the kernel is old.
            self._poll.register(self._handles[pid], select.POLLIN)
        self._until[pid] = until

    def _end_late(self) -> None:
        """With its group, as the supervisor does. The number is its own until the supervisor sees its end."""
        now = self._clock.monotonic()
        for pid in [pid for pid, until in self._until.items() if until <= now]:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._handles[pid], signal.SIGKILL)
                os.killpg(pid, signal.SIGKILL)
            self._forget(pid)

    def _forget(self, pid: int) -> None:
        handle = self._handles.pop(pid)
        self._poll.unregister(handle)
        os.close(handle)
        self._until.pop(pid)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Its supervisor hears these and decides.
    Switch(sys.stdin.fileno(), SystemClock()).run()


if __name__ == "__main__":
    main()
