"""The app of the trials: jobs that stop at points which a test controls, and do to their worker what bad jobs do.

A gate is a file in the worker's folder; a job that is given one waits there until it appears. Every job tells the
receiver what it does, with its fence, so that the checker of the kill test can read the run: it starts, charges once,
and returns its fence.
"""

from __future__ import annotations

import asyncio
import ctypes
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from rota import App, Context, Fixed
from tests.faults.trial_command import LEFT
from tests.kill.effects import ADDRESS, Effect, send
from tests.kill.jobs import CHARGE, PATIENT
from tests.kill.processes import MARK

_PR_SET_PDEATHSIG = 1
STUBBORN = Fixed(attempts=500, delay=0.05)
"""For a fault that lasts until the test has looked, which may be long on a busy machine."""
BAD_RESULTS: dict[str, Any] = {
    "nan": math.nan,
    "infinity": [{"a": math.inf}],
    "nul": "a\x00b",
    "surrogate": {"a": "\ud800"},
    "object": object(),
    "circle": [],
    "deep": 0,
    "large": "x" * 17_000_000,
}
BAD_RESULTS["circle"].append(BAD_RESULTS["circle"])
for _ in range(500):
    BAD_RESULTS["deep"] = [BAD_RESULTS["deep"]]

app = App("trial")
COMMANDS = set[str]()


@app.job(retry=PATIENT)
def stepped(ctx: Context, ticket: str, before: str = "", after: str = "") -> int:
    """Waits at one gate before its effect, and at another between the effect and its return; `{}` is the fence."""
    tell(ctx, "start")
    wait_at(before.format(ctx.fence))
    tell(ctx, CHARGE)
    wait_at(after.format(ctx.fence))
    tell(ctx, "end")
    return ctx.fence


@app.job(retry=PATIENT)
async def blocking(ctx: Context, ticket: str, gate: str) -> int:
    """Holds the event loop until its gate opens: whatever was claimed with it has not begun meanwhile."""
    tell(ctx, "start")
    wait_at(gate)
    tell(ctx, CHARGE)
    return ctx.fence


@app.job(retry=PATIENT)
async def computing(ctx: Context, ticket: str, seconds: float) -> int:
    """Nothing but processor time on the event loop."""
    tell(ctx, "start")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    tell(ctx, CHARGE)
    return ctx.fence


@app.job(retry=PATIENT)
async def patient(ctx: Context, ticket: str, gate: str) -> int:
    """Waits at its gate for as long as it takes, without blocking other jobs."""
    tell(ctx, "start")
    await pass_through(gate)
    tell(ctx, CHARGE)
    return ctx.fence


@app.job(retry=PATIENT)
def starting(ctx: Context, ticket: str, gate: str) -> int:
    """Has a program do the work, in the first attempt one that does not end."""
    tell(ctx, "start")
    if ctx.fence == 1:
        Path(LEFT).write_text(str(subprocess.Popen(["sleep", "600"]).pid))
    wait_at(gate)
    tell(ctx, CHARGE)
    return ctx.fence


@app.job(retry=PATIENT)
async def unleashed(ctx: Context, ticket: str, gate: str) -> int:
    """Takes back, for its whole process, the wish to be killed by the kernel when the parent dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)
    tell(ctx, "start")
    await pass_through(gate)
    tell(ctx, CHARGE)
    return ctx.fence


@app.job(retry=PATIENT)
def deadly(ctx: Context, ticket: str) -> int:
    tell(ctx, "start")
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()
    return 0


@app.job(retry=PATIENT)
def awkward(ctx: Context, ticket: str, kind: str) -> Any:
    """Does its work, and returns a value that cannot be stored."""
    tell(ctx, "start")
    return BAD_RESULTS[kind]


@app.job(retry=PATIENT)
def huge(ctx: Context, ticket: str, megabytes: int) -> str:
    tell(ctx, "start")
    return "x" * megabytes * 1_000_000


@app.job(retry=PATIENT)
def changed(ctx: Context, ticket: str, amount: int) -> int:
    """Its callers still know another signature."""
    tell(ctx, "start")
    return ctx.fence


@app.job(retry=STUBBORN)
def opening(ctx: Context, ticket: str) -> int:
    """Needs a descriptor of its own for all that it tells."""
    tell(ctx, "start")
    tell(ctx, CHARGE)
    return ctx.fence


def command(name: str, *words: str, **options: Any) -> None:
    """A job that is a command, which tells the receiver what it does as the others do."""
    COMMANDS.add(name)
    app.command(
        name,
        [sys.executable, "-m", "tests.faults.trial_command", "{ticket}", *words],
        inherits=["PATH", "PYTHONPATH", ADDRESS, MARK],
        result="json",
        **options,
    )


command("shouting", "shout", "100", retry=PATIENT)
command("forking", "charge")
command("stubborn", "ignore", retry=None, grace="0.2s")
command("parent", "leave", retry=PATIENT)
command("remaining", "remain", retry=PATIENT)


def tell(ctx: Context, kind: str) -> None:
    send(Effect(ctx.id, ctx.fence, kind, fenced=kind == CHARGE, pid=os.getpid()))


async def pass_through(gate: str) -> None:
    """`wait_at`, for a job that does not block the event loop."""
    while not Path(gate).exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # sleep: a gate is a file, which sends no signal.


def wait_at(gate: str) -> None:
    while gate and not Path(gate).exists():
        time.sleep(0.01)  # sleep: a gate is a file, which sends no signal.
