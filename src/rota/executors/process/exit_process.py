"""Ends a process that has run user code: runs its atexit handlers, then exits.

Error trackers and tracers write their buffers in atexit handlers. sys.exit() would join every thread that is not a
daemon before the handlers, so a job's thread that never ends would keep the process forever.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from typing import NoReturn

HANDLERS_S = 5.0
"""How long all handlers together may take."""


def exit_in_order(code: int) -> NoReturn:
    """Runs the atexit handlers and ends the process. To be called from the main thread, after the last report."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # The process is ending already.
    _flush()
    limit = threading.Timer(HANDLERS_S, os._exit, [code])
    limit.daemon = True
    with contextlib.suppress(BaseException):  # Without a thread for the limit (RuntimeError) no handler runs.
        limit.start()
        atexit._run_exitfuncs()
    exit_at_once(code)


def exit_at_once(code: int) -> NoReturn:
    _flush()
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stderr__):
        with contextlib.suppress(BaseException):  # A job may have closed or replaced them.
            stream.flush()  # type: ignore[union-attr]
