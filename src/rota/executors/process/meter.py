"""Measures the processor time and the peak memory of an attempt in the process that runs it.

It reads as little as possible, because it runs before and after every job. The kernel keeps one peak per process; that
is reset only when it would be wrong for the next job, because a reset costs a write to a file in /proc.
"""

from __future__ import annotations

import contextlib
import os
import resource

from rota.domain.usage import Usage
from rota.executors.process.connection import Spent

NEAR_BYTES = 1024 * 1024
"""A peak is reset if it is above the current size by more than this."""
MOST_TEXT = 256
_PAGE = os.sysconf("SC_PAGESIZE")


class Peak:
    """The peak memory of this process, as the kernel keeps it.

    To be made before the process is made not dumpable (`hiding`): after that its own user may not open the file.
    """

    def __init__(self) -> None:
        self._fd = _opened("/proc/self/clear_refs", os.O_WRONLY)
        self._file = _identity(self._fd)

    def forget(self) -> None:
        """Resets the peak to the memory that is held now."""
        # A job may have closed the descriptor and opened a file of its own that has its number.
        if self._file is not None and _identity(self._fd) == self._file:
            with contextlib.suppress(OSError):
                os.write(self._fd, b"5")


class Meter:
    """Measures one job after the other in this process."""

    def __init__(self, peak: Peak | None = None) -> None:
        self._sizes = _opened("/proc/self/statm", os.O_RDONLY)
        self._peak = peak or Peak()
        self._cpu_s = 0.0
        self._children_s = 0.0
        self.spent = Spent()
        """What this process had cost when the last job had ended."""
        self.end()

    def begin(self) -> None:
        self._cpu_s, _, peak_bytes, _ = _spent()
        if peak_bytes > self.spent.rss_bytes + NEAR_BYTES:
            self._peak.forget()

    def end(self) -> Usage:
        cpu_s, children_s, peak_bytes, children_bytes = _spent()
        rss_bytes = self._resident()
        # A child that has ended may have held a lot together with this process.
        is_past_peak = peak_bytes > rss_bytes + NEAR_BYTES or children_s > self._children_s
        self._children_s = children_s
        self.spent = Spent(cpu_s, rss_bytes, children_bytes, is_past_peak)
        return Usage(cpu_s=cpu_s - self._cpu_s, peak_bytes=max(peak_bytes, rss_bytes))

    def _resident(self) -> int:
        try:
            return int(os.pread(self._sizes, MOST_TEXT, 0).split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            return 0  # There is no /proc, or a job has closed the descriptor.


def _opened(path: str, how: int) -> int:
    try:
        return os.open(path, how | os.O_CLOEXEC)
    except OSError:
        return -1


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _spent() -> tuple[float, float, int, int]:
    """Processor seconds with and of ended children; the peak of this process and of one of them."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    children_s = others.ru_utime + others.ru_stime
    return own.ru_utime + own.ru_stime + children_s, children_s, own.ru_maxrss * 1024, others.ru_maxrss * 1024
