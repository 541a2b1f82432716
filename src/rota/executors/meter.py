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

NEAR_BYTES = 1024 * 1024
"""By so much the most that is told of a job may belong to the one before it."""
MOST_TEXT = 256
_PAGE = os.sysconf("SC_PAGESIZE")


class Meter:
    """Measures one job after the other in this process."""

    def __init__(self) -> None:
        self._sizes = _opened("/proc/self/statm")
        self._cpu_s = 0.0
        self.rss_bytes = self._resident()
        """How large the process was when the last job had ended."""

    def begin(self) -> None:
        self._cpu_s, peak_bytes = _spent()
        if peak_bytes > self.rss_bytes + NEAR_BYTES:
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")

    def end(self) -> Usage:
        cpu_s, peak_bytes = _spent()
        self.rss_bytes = self._resident()
        return Usage(cpu_s=cpu_s - self._cpu_s, peak_bytes=max(peak_bytes, self.rss_bytes))

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


def _spent() -> tuple[float, int]:
    """Processor seconds of this process and of those that it has started and seen end, and the most that it held."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime, own.ru_maxrss * 1024
