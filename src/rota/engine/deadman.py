"""The supervisor's side of its dead man's switch: a process that ends its children if it cannot do so itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

PROGRAM = str(Path(__file__).with_name("deadman_main.py"))


class Deadman:
    """One process at a time; a new one, if it was killed."""

    def __init__(self, slack_s: float) -> None:
        """`slack_s` is how long a child has, after the end of its lease, to let go by itself."""
        self._slack_s = slack_s
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Ahead of the first child's lease, for it takes a moment. If it cannot be started now, that is tried again."""
        with contextlib.suppress(OSError):
            self._started()

    def hold(self, pid: int, until: float) -> None:
        """The child may live until then. If that cannot be said, its own tether has to do."""
        line = f"{pid} {until + self._slack_s}\n".encode()
        with contextlib.suppress(OSError):
            try:
                self._tell(line)
            except OSError:
                self.close()
                self._tell(line)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _tell(self, line: bytes) -> None:
        if self._started().write(line) is None:
            raise BlockingIOError  # It was stopped long ago.

    def _started(self) -> IO[bytes]:
        """Its pipe."""
        if self._process is None:
            # In a session of its own, so that what stops the supervisor from a terminal misses it.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", PROGRAM],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
        assert self._process.stdin is not None
        return self._process.stdin
