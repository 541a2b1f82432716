"""The app of the chaos run: every way to run a job, and every way for one to go wrong.

Bodies make effects at the start, in the middle and at the end, as those of the kill test do. What each job is meant to
come to is in `designs.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rota import App, Context, Fixed
from tests.chaos.program import NOISE, NOISE_LINES
from tests.chaos.receiver import PORT
from tests.kill.bodies import CHARGE, body, effect, threaded_body
from tests.kill.effects import ADDRESS, asend, send
from tests.kill.jobs import PATIENT, Boom
from tests.kill.processes import MARK

DEPTH = 3000
DOOMED = Fixed(attempts=2, delay=0.1)
STUBBORN = Fixed(attempts=40, delay=0.1)
"""For commands: each kill of one is a failed attempt of its own."""
TIMEOUT_S = 1.0
LONG_S = 25.0
STEPS = 5
PROGRAM = [sys.executable, "-I", "-S", str(Path(__file__).with_name("program.py"))]

app = App("chaos")
app.queue("default", max_depth=DEPTH)


@app.job(retry=PATIENT)
async def quick(ctx: Context, ticket: str, body_s: float) -> int:
    return await body(ctx, body_s)


@app.job(retry=PATIENT)
def threaded(ctx: Context, ticket: str, body_s: float) -> int:
    return threaded_body(ctx, body_s)


@app.job(isolation="process", retry=PATIENT)
def isolated(ctx: Context, ticket: str, body_s: float) -> int:
    return threaded_body(ctx, body_s)


@app.job(retry=PATIENT)
async def flaky(ctx: Context, ticket: str, body_s: float) -> int:
    fence = await body(ctx, body_s)
    if ctx.attempt < 3:
        raise Boom(f"attempt {ctx.attempt}")
    return fence


@app.job(retry=DOOMED)
async def doomed(ctx: Context, ticket: str, body_s: float) -> int:
    await body(ctx, body_s)
    raise Boom(f"attempt {ctx.attempt}")


@app.job(retry=PATIENT)
def stepped(ctx: Context, ticket: str, body_s: float) -> int:
    """Resumes from its checkpoint; fails once on the way."""
    first = ctx.restored or 0
    send(effect(ctx, f"from {first}"))
    for step in range(first, STEPS):
        time.sleep(body_s / STEPS)  # sleep: stands for the job's own work
        send(effect(ctx, f"step {step}"))
        ctx.checkpoint(step + 1)
        if step == 2 and ctx.attempt == 1:
            raise Boom("in the middle")
    send(effect(ctx, CHARGE))
    return ctx.fence


# --- Commands and requests ------------------------------------------------------------------------


def _command(name: str, mode: str, **about: Any) -> Any:
    return app.command(name, [*PROGRAM, mode, "{ticket}", "{body_s}"], inherits=[ADDRESS, MARK], result="json", **about)


command = _command("command", "work", retry=STUBBORN)
noisy_command = _command("noisy_command", "noise", retry=STUBBORN)
overrun_command = _command("overrun_command", "overrun", retry=DOOMED, timeout=TIMEOUT_S, grace=2)
long_command = _command("long_command", "long", retry=STUBBORN, grace=5)
call = app.http(
    "call",
    f"http://127.0.0.1:{os.environ.get(PORT, '9')}/charge",
    retry=PATIENT,
    result="json",
    allow=["127.0.0.0/8"],
)


# --- Schedules ------------------------------------------------------------------------------------


@app.job(retry=PATIENT, every="1s", overlap="allow", catch_up="last")
async def second(ctx: Context) -> int:
    return await body(ctx, 0.1)


@app.job(retry=PATIENT, cron="*/2 * * * * *", overlap="skip", catch_up="none")
def other_second(ctx: Context) -> int:
    return threaded_body(ctx, 0.1)


# --- Too long, and cancelled ----------------------------------------------------------------------


@app.job(retry=DOOMED, timeout=TIMEOUT_S)
async def overrun(ctx: Context, ticket: str, body_s: float) -> int:
    await asend(effect(ctx, "start"))
    await asyncio.sleep(LONG_S)  # sleep: meant to be too long
    return ctx.fence


@app.job(retry=DOOMED, timeout=TIMEOUT_S)
def overrun_threaded(ctx: Context, ticket: str, body_s: float) -> int:
    send(effect(ctx, "start"))
    if ctx.wait_cancelled(LONG_S):
        raise InterruptedError("asked to stop")
    return ctx.fence


@app.job(isolation="process", retry=DOOMED, timeout=TIMEOUT_S, grace=2)
def overrun_isolated(ctx: Context, ticket: str, body_s: float) -> int:
    send(effect(ctx, "start"))
    time.sleep(LONG_S)  # sleep: meant to be too long
    return ctx.fence


@app.job(retry=PATIENT)
async def long(ctx: Context, ticket: str, body_s: float) -> int:
    """Its enqueuer cancels it."""
    try:
        return await body(ctx, LONG_S)
    except asyncio.CancelledError:
        await asend(effect(ctx, "told"))
        raise


@app.job(retry=PATIENT)
def long_threaded(ctx: Context, ticket: str, body_s: float) -> int:
    send(effect(ctx, "start"))
    if ctx.wait_cancelled(LONG_S):
        send(effect(ctx, "told"))
        raise InterruptedError("asked to stop")
    send(effect(ctx, CHARGE))
    return ctx.fence


@app.job(isolation="process", retry=PATIENT, grace=5)
def long_isolated(ctx: Context, ticket: str, body_s: float) -> int:
    with _telling(ctx):
        return threaded_body(ctx, LONG_S)


# --- Poison and bad content -----------------------------------------------------------------------


@app.job
def poison(ctx: Context, ticket: str, body_s: float) -> None:
    send(effect(ctx, "start"))
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()


@app.job(isolation="process")
def poison_isolated(ctx: Context, ticket: str, body_s: float) -> None:
    send(effect(ctx, "start"))
    os.kill(os.getpid(), signal.SIGKILL)


@app.job
async def object_result(ctx: Context, ticket: str, body_s: float) -> Any:
    await asend(effect(ctx, "start"))
    return object()


@app.job
def nul_result(ctx: Context, ticket: str, body_s: float) -> Any:
    send(effect(ctx, "start"))
    return {"text": "a\x00b"}


@app.job(isolation="process")
def large_result(ctx: Context, ticket: str, body_s: float) -> Any:
    send(effect(ctx, "start"))
    return "x" * 17_000_000


@app.job(retry=None)
def strange_error(ctx: Context, ticket: str, body_s: float) -> None:
    send(effect(ctx, "start"))
    raise Boom("a\x00b\ud800" + "x" * 5_000_000)


@app.job(retry=PATIENT)
def noisy(ctx: Context, ticket: str, body_s: float) -> int:
    """Prints more than ten megabytes."""
    send(effect(ctx, "start"))
    for _ in range(NOISE_LINES):
        print(NOISE)
    send(effect(ctx, CHARGE))
    return ctx.fence


@contextmanager
def _telling(ctx: Context) -> Iterator[None]:
    """An isolated function is asked to stop by an exception."""
    try:
        yield
    except BaseException:
        send(effect(ctx, "told"))
        raise
