"""The app whose workers the exactly-once test kills: each job writes one line in a ledger of the same database.

Every job runs in a worker process. ROTA_URL is the app's database; PAYMENTS_URL, if it is set, is a bad way to the same
database, on which the jobs' own transactions travel.
"""

from __future__ import annotations

import os
import random
import signal

import psycopg

from rota import App, Context, Fixed
from rota.sdk.app import registry_of

app = App("payments")
RETRY = Fixed(attempts=1000, delay=0.01)
WRITE = "INSERT INTO ledger (entry, fence) VALUES (%s, %s)"
DEADLY = float(os.environ.get("PAYMENTS_DEADLY", "0"))
"""How likely a job is to kill its process at each step."""


def risk() -> None:
    if random.random() < DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)


@app.job(retry=RETRY)
def pay(ctx: Context, order: int) -> str:
    with ctx.transaction() as conn:
        risk()
        conn.execute(WRITE, (ctx.id, ctx.fence))
        risk()
        ctx.complete(conn, f"paid {order}")
    risk()
    return "this is not the result"


@app.job(retry=RETRY)
async def apay(ctx: Context, order: int) -> str:
    async with ctx.transaction() as conn:
        risk()
        await conn.execute(WRITE, (ctx.id, ctx.fence))
        risk()
        ctx.complete(conn, f"paid {order}")
    risk()
    return "this is not the result"


@app.job(retry=RETRY)
def pay_elsewhere(ctx: Context, order: int) -> None:
    """With a connection of the job's own, over a network that loses commits."""
    with psycopg.connect(os.environ.get("PAYMENTS_URL") or registry_of(app).settings.url) as conn:
        conn.execute(WRITE, (ctx.id, ctx.fence))
        ctx.complete(conn, f"paid {order}")
        risk()
    risk()


@app.job(retry=None)
def decline(ctx: Context, order: int) -> None:
    with ctx.transaction() as conn:
        conn.execute(WRITE, (ctx.id, ctx.fence))
        raise ValueError(f"order {order} is declined")
