"""Makes a test run independent of the shell, terminal or service manager that started it."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import sys
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 * 1024**3
"""A run needs less than 2 GB. Containers often have a /dev/shm of 64 MB, which is not enough."""

_IGNORED_BY_PYTHON = {signal.SIGPIPE, getattr(signal, "SIGXFSZ", signal.SIGPIPE)}


def prepare() -> None:
    """Called once in each process of the run, before any test."""
    restore_signals()
    write_bytecode()
    use_memory_for_files()
    # Libraries ask for it, and the first call runs `uname -p`: better here than in a test that may start no process.
    platform.processor()


def restore_signals() -> None:
    """Restores the signals that the parent process ignores or blocks; child processes inherit both.

    A shell ignores SIGINT and SIGQUIT in the background jobs of a script, and `nohup` ignores SIGHUP.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - _IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def write_bytecode() -> None:
    """Without compiled files each of the thousands of processes in a run would compile the same modules again."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def use_memory_for_files() -> None:
    """Puts temporary files into memory, where a flush costs nothing, unless TMPDIR names a folder.

    No test depends on the disk: the tests kill processes and servers, and files in memory outlive both.
    """
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(MEMORY).free >= ENOUGH_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
