"""Jobs that run by themselves: start them, watch them, and ask what became of their ticks.

    rota dev examples.schedules:app

In a second terminal: `rota schedules`, `rota schedules ticks count_stock`, `rota schedules ticks settle --missed`,
`rota schedules pause heartbeat --note "too loud"`, `rota backfill report --from 7d`, `rota schedules lint`.
"""

from __future__ import annotations

import logging

from rota import App, Context

log = logging.getLogger("schedules")

app = App("office")


@app.job(every="5s")
async def heartbeat(ctx: Context) -> float:
    """At a fixed rate; returns how late it was, in seconds."""
    return ctx.late_by.total_seconds()


@app.job(after="10s")
def poll(ctx: Context, seconds: float = 2.0) -> None:
    """With a fixed delay: ten seconds after the end of the run before, however long that took."""
    ctx.wait_cancelled(seconds)  # A slow service would be asked here.


@app.job(every="4s", overlap="skip")
def settle(ctx: Context, seconds: float = 6.0) -> None:
    """Takes longer than its interval, so every other tick is left out; the ledger and `rota schedules lint` say so."""
    ctx.wait_cancelled(seconds)


@app.job(cron="H/2 * * * *", jitter="20s")
def count_stock(shelf: str = "A") -> str:
    """Every two minutes, spread: `H` and the jitter are hashes, the same on every node."""
    return f"shelf {shelf} is counted"


@app.job(
    cron="0 9 * * 1-5",
    tz="Europe/Berlin",
    exclude=["2026-12-24", "2026-12-31"],
    catch_up="all",
    window="3d",
    overlap="queue_all",
)
def report(ctx: Context) -> str:
    """On working days, at nine in Berlin; three days of reports are made up for, one after the other."""
    day = ctx.scheduled_for.date()
    if ctx.catch_up:
        log.info("the report of %s comes %s late", day, ctx.late_by)
    return f"report of {day}"


@app.job(cron="0 2 * * *", tz="Europe/Berlin", dst_gap="next", dst_overlap="first")
def backup() -> str:
    """Every night once, also when clocks are changed."""
    return "backed up"
