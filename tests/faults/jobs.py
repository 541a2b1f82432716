"""The app whose jobs run while the database fails. Every run leaves a line in a file, with its fence."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rota import App, Context

EFFECTS = "ROTA_TESTS_EFFECTS"


def declare(app: App) -> App:
    """Declares the jobs; the tests do it on apps of their own, to enqueue them."""

    @app.job(retry=None)
    def work(ctx: Context, ticket: str, seconds: float = 0.0) -> str:
        """Records that it ran. No retries: an attempt that is counted by mistake would end it as failed."""
        _note(ctx.id, ctx.fence, "started")
        time.sleep(seconds)  # sleep: stands for the job's own work
        _note(ctx.id, ctx.fence, "ended")
        return ticket

    @app.job(retry=None)
    def endless(ctx: Context) -> None:
        _note(ctx.id, ctx.fence, "started")
        while not ctx.wait_cancelled(10):
            pass
        raise InterruptedError

    return app


def _note(*words: object) -> None:
    line = " ".join(map(str, words)) + "\n"
    fd = os.open(Path(os.environ[EFFECTS]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(fd, line.encode())
    os.close(fd)


app = declare(App("faults"))
