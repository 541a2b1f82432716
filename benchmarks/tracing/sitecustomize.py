"""Counts the statements of a process and its children in the probe file; Python imports this when it is on the path."""

from __future__ import annotations

import sqlite3
from typing import Any

from benchmarks import probe

_NOT_QUERIES = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA")
_connect = sqlite3.connect


def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = _connect(*args, **kwargs)
    connection.set_trace_callback(lambda text: None if text.startswith(_NOT_QUERIES) else probe.current().bump())
    return connection


sqlite3.connect = connect  # type: ignore[assignment]
