"""The app of the kill test: short bodies with effects at the start, in the middle and at the end.

At each of the three points a body makes an effect without a fence, and at one of them, chosen anew by every attempt, a
fenced one, so that old and new attempts of an execution meet at the receiver in every order.
"""

from __future__ import annotations

import asyncio
import os
import random
import time

from rota import App, Context, Fixed
from tests.kill.effects import Effect, asend, send

POINTS = ("start", "middle", "end")
CHARGE = "charge"
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
    return await _body(ctx, body_s)


@app.job(retry=PATIENT)
def threaded(ctx: Context, ticket: str, body_s: float) -> int:
    return _threaded_body(ctx, body_s)


@app.job(retry=PATIENT)
async def slow(ctx: Context, ticket: str, body_s: float) -> int:
    """Long enough to outlive a short lease while its supervisor is stopped."""
    return await _body(ctx, 0.8 + 4 * body_s)


@app.job(retry=PATIENT)
async def flaky(ctx: Context, ticket: str, body_s: float) -> int:
    fence = await _body(ctx, body_s)
    if ctx.attempt < 3:
        raise Boom(f"attempt {ctx.attempt}")
    return fence


@app.job(retry=PATIENT)
def flaky_threaded(ctx: Context, ticket: str, body_s: float) -> int:
    fence = _threaded_body(ctx, body_s)
    if ctx.attempt < 2:
        raise Boom(f"attempt {ctx.attempt}")
    return fence


@app.job(retry=Fixed(attempts=DOOMED_ATTEMPTS, delay=0.05))
async def doomed(ctx: Context, ticket: str, body_s: float) -> int:
    await _body(ctx, body_s)
    raise Boom(f"attempt {ctx.attempt}")


@app.job(retry=PATIENT)
def late(ctx: Context, ticket: str, first_s: float, next_s: float = 0.0) -> int:
    """The first attempt takes its time before it charges, the next ones after it: the first will be too late."""
    send(_effect(ctx, "start"))
    if ctx.fence == 1:
        time.sleep(first_s)  # sleep: stands for the job's own work
    send(_effect(ctx, CHARGE))
    if ctx.fence > 1:
        time.sleep(next_s)  # sleep: stands for the job's own work
    return ctx.fence


async def _body(ctx: Context, body_s: float) -> int:
    charge_at = random.choice(POINTS)
    for point in POINTS:
        if point != "start":
            await asyncio.sleep(body_s / 2)  # sleep: stands for the job's own work
        for effect in _effects(ctx, point, charge_at):
            await asend(effect)
    return ctx.fence


def _threaded_body(ctx: Context, body_s: float) -> int:
    charge_at = random.choice(POINTS)
    for point in POINTS:
        if point != "start":
            time.sleep(body_s / 2)  # sleep: stands for the job's own work
        for effect in _effects(ctx, point, charge_at):
            send(effect)
    return ctx.fence


def _effects(ctx: Context, point: str, charge_at: str) -> list[Effect]:
    return [_effect(ctx, kind) for kind in ((point, CHARGE) if point == charge_at else (point,))]


def _effect(ctx: Context, kind: str) -> Effect:
    return Effect(ctx.id, ctx.fence, kind, fenced=kind == CHARGE, pid=os.getpid())
