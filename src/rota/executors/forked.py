"""A job may fork, and its copy returns from the function, too: there it must end, for the work after it is not its own.

The copy has the sockets, the event loop and the outcome of the process that it was made of. If it went on, its answer
would be taken for that of another execution.
"""

from __future__ import annotations

import contextlib
import os
import sys


class Original:
    """The process in which this was made."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def end_copy(self) -> None:
        """Ends this process if it is a copy of the original."""
        if os.getpid() != self._pid:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):  # A job may have closed or replaced them.
                    stream.flush()
            os._exit(0)
