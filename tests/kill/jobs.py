"""The app of the kill test: short bodies with effects at the start, in the middle and at the end."""

from __future__ import annotations

import time

from rota import App, Context, Fixed
from tests.kill.bodies import CHARGE as CHARGE
from tests.kill.bodies import body, effect, threaded_body
from tests.kill.effects import send

PATIENT = Fixed(attempts=9, delay=0.05)
DOOMED_ATTEMPTS = 2
DEPTH = 40
"""The enqueuers fill the queue up to here and then wait: the load follows what the fleet can still do."""


class Boom(Exception):
    """What the failing jobs raise."""


app = App("kill")
app.queue("default", max_depth=DEPTH)


@app.job(retry=PATIENT)
async def quick(ctx: Context, ticket: str, body_s: float) -> int:
    return await body(ctx, body_s)


@app.job(retry=PATIENT)
def threaded(ctx: Context, ticket: str, body_s: float) -> int:
    return threaded_body(ctx, body_s)


@app.job(retry=PATIENT)
async def slow(ctx: Context, ticket: str, body_s: float) -> int:
    """Long enough to outlive a short lease while its supervisor is stopped."""
    return await body(ctx, 0.8 + 4 * body_s)


@app.job(retry=PATIENT)
async def flaky(ctx: Context, ticket: str, body_s: float) -> int:
    fence = await body(ctx, body_s)
    if ctx.attempt < 3:
        raise Boom(f"attempt {ctx.attempt}")
    return fence


@app.job(retry=PATIENT)
def flaky_threaded(ctx: Context, ticket: str, body_s: float) -> int:
    fence = threaded_body(ctx, body_s)
    if ctx.attempt < 2:
        raise Boom(f"attempt {ctx.attempt}")
    return fence


@app.job(retry=Fixed(attempts=DOOMED_ATTEMPTS, delay=0.05))
async def doomed(ctx: Context, ticket: str, body_s: float) -> int:
    await body(ctx, body_s)
    raise Boom(f"attempt {ctx.attempt}")


@app.job(retry=PATIENT)
def late(ctx: Context, ticket: str, first_s: float, next_s: float = 0.0) -> int:
    """The first attempt takes its time before it charges, the next ones after it: the first will be too late."""
    send(effect(ctx, "start"))
    if ctx.fence == 1:
        time.sleep(first_s)  # sleep: stands for the job's own work
    send(effect(ctx, CHARGE))
    if ctx.fence > 1:
        time.sleep(next_s)  # sleep: stands for the job's own work
    return ctx.fence
