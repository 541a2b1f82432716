"""What the bodies of jobs do: effects at the start, in the middle and at the end.

At each of the three points a body makes an effect without a fence, and at one of them, chosen anew by every attempt, a
fenced one, so that old and new attempts of an execution meet at the receiver in every order.
"""

from __future__ import annotations

import asyncio
import os
import random
import time

from rota import Context
from tests.kill.effects import Effect, asend, send

POINTS = ("start", "middle", "end")
CHARGE = "charge"


async def body(ctx: Context, body_s: float) -> int:
    charge_at = random.choice(POINTS)
    for point in POINTS:
        if point != "start":
            await asyncio.sleep(body_s / 2)  # sleep: stands for the job's own work
        for one in _effects(ctx, point, charge_at):
            await asend(one)
    return ctx.fence


def threaded_body(ctx: Context, body_s: float) -> int:
    charge_at = random.choice(POINTS)
    for point in POINTS:
        if point != "start":
            time.sleep(body_s / 2)  # sleep: stands for the job's own work
        for one in _effects(ctx, point, charge_at):
            send(one)
    return ctx.fence


def _effects(ctx: Context, point: str, charge_at: str) -> list[Effect]:
    return [effect(ctx, kind) for kind in ((point, CHARGE) if point == charge_at else (point,))]


def effect(ctx: Context, kind: str) -> Effect:
    return Effect(ctx.id, ctx.fence, kind, fenced=kind == CHARGE, pid=os.getpid())
