"""A job may fork, and its copy returns from the function, too: there it must end, for the work after it is not its own.

The copy has the sockets, the event loop and the outcome of the process that it was made of. If it went on, its answer
would be taken for that of another execution.
"""

from __future__ import annotations

import contextlib
import os
import sys

_copies = 0
"""How many forks lead from the first process to this one. To ask the system for the process's number costs more."""


class Original:
    """The process in which this was made."""

    def __init__(self) -> None:
        self._copies = _copies

    @property
    def is_copied(self) -> bool:
        """Whether this process is a copy of the original."""
        return _copies != self._copies

    def end_copy(self) -> None:
        """Ends this process if it is a copy of the original."""
        if _copies != self._copies:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):  # A job may have closed or replaced them.
                    stream.flush()
            os._exit(0)


def _count() -> None:
    global _copies
    _copies += 1


os.register_at_fork(after_in_child=_count)
