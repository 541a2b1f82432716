"""Ends a copy that a job has made of its process with os.fork() when the copy returns from the job's function.

The copy has the sockets and the event loop of the original. If it continued, its answer would be mistaken for that of
another execution. It exits as Python would: with 0 after a return, with the code of a SystemExit, or
with 1 and the traceback on standard error. Its atexit handlers do not run: the buffers that they would write belong to
the original process, which writes them itself.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback

from rota.executors.process.exit_process import exit_at_once

_copies = 0
"""The number of forks between the first process and this one. Cheaper to compare than the pid."""


class Original:
    """The process in which this was made."""

    def __init__(self) -> None:
        self._copies = _copies

    @property
    def is_copied(self) -> bool:
        """Whether this process is a copy of the original."""
        return _copies != self._copies

    def end_copy(self, error: BaseException | None = None) -> None:
        """Ends this process if it is a copy of the original. `error` is the exception that left the function."""
        if _copies != self._copies:
            code = 1
            with contextlib.suppress(BaseException):  # The exception's own code may fail, or standard error be closed.
                code = _exit_code(error)
            exit_at_once(code)


def _exit_code(error: BaseException | None) -> int:
    """The exit code that Python would give the process. Writes to standard error what Python would."""
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        # Not sys.stderr: in a worker that also feeds the attempt's log, whose lock a thread of the original may hold.
        traceback.print_exception(error, file=sys.__stderr__)
        return 1
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    print(error.code, file=sys.__stderr__)
    return 1


def _count() -> None:
    global _copies
    _copies += 1


os.register_at_fork(after_in_child=_count)
