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


class Meter:
    """Measures one job after the other in this process.

    To be made before the process is made not dumpable (`protect_secrets`): after that its own user may not open the
    files.
    """

    def __init__(self) -> None:
        self._sizes = _opened("/proc/self/statm", os.O_RDONLY)
        self._resets = _opened("/proc/self/clear_refs", os.O_WRONLY)
        self._cpu_s = 0.0
        self.spent = Spent()
        """The processor time and peak memory of this process when the last job had ended."""
        self.end()

    def begin(self) -> None:
        self._cpu_s, peak_bytes = _spent()
        if peak_bytes > self.spent.rss_bytes + NEAR_BYTES:
            with contextlib.suppress(OSError):
                os.write(self._resets, b"5")  # The peak becomes the memory that is held now.

    def end(self) -> Usage:
        cpu_s, peak_bytes = _spent()
        rss_bytes = self._resident()
        self.spent = Spent(cpu_s, rss_bytes)
        return Usage(cpu_s=cpu_s - self._cpu_s, peak_bytes=max(peak_bytes, rss_bytes))

    def _resident(self) -> int:
        try:
            return int(os.pread(self._sizes, MOST_TEXT, 0).split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            return 0  # There is no /proc.


def _opened(path: str, how: int) -> int:
    try:
        return os.open(path, how | os.O_CLOEXEC)
    except OSError:
        return -1


def _spent() -> tuple[float, int]:
    """The processor seconds of this process and its ended children, and the peak memory of this process."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime, own.ru_maxrss * 1024
