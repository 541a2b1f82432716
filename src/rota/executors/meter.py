"""What an attempt costs the process that it runs in: the processor's time, and the most memory that was held.

Asked before and after every job, so as little as possible is asked. The kernel keeps the most that a process ever held;
to have it forget that takes a file to be opened and written, and is only done when it would be wrong for the next job.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from rota.domain.usage import Usage
from rota.executors.frames import Spent

NEAR_BYTES = 1024 * 1024
"""By so much the most that is told of a job may belong to the one before it."""
MOST_TEXT = 256
_PAGE = os.sysconf("SC_PAGESIZE")


class Meter:
    """Measures one job after the other in this process."""

    def __init__(self) -> None:
        self._sizes = _opened("/proc/self/statm")
        self._cpu_s = 0.0
        self._children_s = 0.0
        self.spent = Spent()
        """What this process had cost when the last job had ended."""
        self.end()

    def begin(self) -> None:
        self._cpu_s, _, peak_bytes, _ = _spent()
        if peak_bytes > self.spent.rss_bytes + NEAR_BYTES:
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")

    def end(self) -> Usage:
        cpu_s, children_s, peak_bytes, children_bytes = _spent()
        rss_bytes = self._resident()
        # One that the job has started, and seen end, may have held a lot together with this one.
        is_past_peak = peak_bytes > rss_bytes + NEAR_BYTES or children_s > self._children_s
        self._children_s = children_s
        self.spent = Spent(cpu_s, rss_bytes, children_bytes, is_past_peak)
        return Usage(cpu_s=cpu_s - self._cpu_s, peak_bytes=max(peak_bytes, rss_bytes))

    def _resident(self) -> int:
        try:
            return int(os.pread(self._sizes, MOST_TEXT, 0).split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            return 0  # There is no /proc, or a job has closed what is not its own.


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _spent() -> tuple[float, float, int, int]:
    """Processor seconds, with and of those that it has started and seen end; the most that it held, and one of them."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    children_s = others.ru_utime + others.ru_stime
    return own.ru_utime + own.ru_stime + children_s, children_s, own.ru_maxrss * 1024, others.ru_maxrss * 1024
