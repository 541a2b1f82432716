"""One attempt in progress, as the worker that runs it has it."""

from __future__ import annotations

import asyncio

from rota.domain.claim import Claim
from rota.engine.stopping import Stop
from rota.executors.context import Context
from rota.executors.function import FunctionTarget
from rota.executors.port import Executor


class Running:
    """What it is, what it runs by, and what may end it."""

    __slots__ = (
        "bucket",
        "claim",
        "context",
        "grace_bucket",
        "limit",
        "silence_bucket",
        "stop",
        "target",
        "task",
    )

    def __init__(self, claim: Claim, target: FunctionTarget | Executor, context: Context, limit: Stop) -> None:
        self.claim = claim
        self.target = target
        self.context = context
        self.limit = limit
        """Which of its timers comes first."""
        self.task: asyncio.Task[None] | None = None
        """None for one that runs in a thread."""
        self.stop: Stop | None = None
        """Why it was asked to stop, if it was."""
        self.bucket = -1
        self.grace_bucket = -1
        self.silence_bucket = -1
