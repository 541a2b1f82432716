"""Keeps commands from reading the secrets of Rota's own processes: not dumpable, and helpers with a bare environment.

A command runs as the worker's user, so it may read `/proc/PID/environ` and the memory of every process of that user
that is dumpable. The kernel makes a process dumpable at each exec; the processes of Rota that hold the database's
password undo that at their start. The price: they leave no core dump, and only root can attach a debugger.
ROTA_DUMPABLE=1 leaves them dumpable.

The spawner's own program imports this file: nothing but the standard library here.
"""

from __future__ import annotations

import ctypes
import os

VARIABLE = "ROTA_DUMPABLE"
KEPT = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", VARIABLE)
"""The environment variables that an interpreter may need to start, besides those that begin with LC_."""
_PR_SET_DUMPABLE = 4


def hide() -> None:
    """Makes this process not dumpable: its environment and memory in /proc are root's from now on."""
    if os.environ.get(VARIABLE) != "1":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def bare_environment() -> dict[str, str]:
    """The few variables that a helper process needs: no database URL, no token."""
    return {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("LC_")}
