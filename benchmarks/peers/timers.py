"""How fast other schedulers in Python fire jobs that are due at once; both keep them in memory only.

Runs in the peers' environment and prints JSON. APScheduler runs each no-op in a thread of its pool, Celery's beat sends
each to a broker in the memory of the same process, which costs nothing that a real one would. Beat compares its whole
schedule at every tick, so it gets only as many as take it some seconds.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

LEAD_S = 8.0
MOST_FOR_BEAT = 2_000


def apscheduler(count: int) -> float:
    from apscheduler.events import EVENT_JOB_EXECUTED, EVENT_JOB_MISSED  # type: ignore[import-not-found]
    from apscheduler.executors.pool import ThreadPoolExecutor  # type: ignore[import-not-found]
    from apscheduler.schedulers.background import BackgroundScheduler  # type: ignore[import-not-found]

    done, ended = threading.Event(), 0

    def hear(_: object) -> None:
        nonlocal ended
        ended += 1
        if ended == count:
            done.set()

    scheduler = BackgroundScheduler(executors={"default": ThreadPoolExecutor(10)}, timezone="UTC")
    scheduler.add_listener(hear, EVENT_JOB_EXECUTED | EVENT_JOB_MISSED)
    due = datetime.now(UTC) + timedelta(seconds=LEAD_S)
    scheduler.start(paused=True)
    for _ in range(count):
        scheduler.add_job(_nothing, "date", run_date=due, misfire_grace_time=600)
    scheduler.resume()
    time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()))
    began = time.perf_counter()
    done.wait(300)
    rate = ended / (time.perf_counter() - began)
    scheduler.shutdown(wait=False)
    return rate


def celery_beat(count: int) -> float:
    from celery import Celery  # type: ignore[import-not-found]
    from celery.beat import Scheduler  # type: ignore[import-not-found]
    from celery.schedules import schedule  # type: ignore[import-not-found]

    app = Celery("peer", broker="memory://")
    app.task(name="nothing")(_nothing)
    past = datetime.now(UTC) - timedelta(hours=2)
    app.conf.beat_schedule = {
        f"s{number}": {"task": "nothing", "schedule": schedule(timedelta(hours=1))} for number in range(count)
    }
    beat = Scheduler(app=app)
    for entry in beat.schedule.values():
        entry.last_run_at = past
    began, sent = time.perf_counter(), 0
    while sent < count and time.perf_counter() - began < 300:
        beat.tick()
        sent = sum(entry.total_run_count > 0 for entry in beat.schedule.values()) if sent % 100 == 99 else sent + 1
    sent = sum(entry.total_run_count > 0 for entry in beat.schedule.values())
    return sent / (time.perf_counter() - began)


def _nothing() -> None:
    """Does nothing."""


if __name__ == "__main__":
    size = int(sys.argv[1])
    print(json.dumps({"apscheduler_herd": apscheduler(size), "celery_herd": celery_beat(min(size, MOST_FOR_BEAT))}))
