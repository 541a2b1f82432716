"""`rota migrate` on a file, in a process that is killed when it begins the statement that its last argument names."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from typing import Any

from rota.cli.main import main

_connect = sqlite3.connect


def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = _connect(*args, **kwargs)
    connection.set_trace_callback(_look)
    return connection


def _look(statement: str) -> None:
    if _last in statement:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _last = sys.argv.pop()
    sqlite3.connect = connect  # type: ignore[assignment]
    sys.argv.append("migrate")
    main()
