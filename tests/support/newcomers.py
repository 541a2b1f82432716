"""Workers that join for a test."""

from __future__ import annotations

from typing import Any

from rota.ops.fleet import Newcomer


def newcomer(app: str, **about: Any) -> Newcomer:
    """A worker of this app that has no jobs, unless the test says otherwise."""
    usual = {"namespace": "default", "name": "w", "host": "test", "pid": 1, "version": "0"}
    return Newcomer(**{**usual, "app": app, "queues": None, "jobs": [], "concurrency": 10, **about})
