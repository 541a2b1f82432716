"""Nodes that are killed every few seconds while schedules tick every second, and what the ledger says of it."""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import time
from datetime import timedelta
from pathlib import Path

import msgspec

from rota import ScheduleHandle, Tick
from tests.support.waiting import eventually
from tests.support.workers import Site, Worker

SECOND = timedelta(seconds=1)
WORKERS = 3
SETTLE_S = 60.0


class Report(msgspec.Struct):
    """What happened."""

    seed: int
    kills: int = 0
    ticks: int = 0
    late_p99_s: float = 0.0
    latest_s: float = 0.0
    crash_loops: int = 0
    problems: list[str] = []

    def __str__(self) -> str:
        lines = [
            f"seed                 {self.seed}",
            f"workers killed       {self.kills}",
            f"ticks                {self.ticks}",
            f"killed three times   {self.crash_loops}",
            f"late, p99 and worst  {self.late_p99_s:.3f} s, {self.latest_s:.3f} s",
            f"problems             {len(self.problems)}",
        ]
        return "\n".join([*lines, *(f"  {problem}" for problem in self.problems[:20])])


def run(folder: Path, url: str, seconds: float, seed: int) -> Report:
    """Kills one of the workers every second or two, and now and then two; one is always left."""
    entropy, report = random.Random(seed), Report(seed)
    with Site(folder, url) as site:
        workers: list[Worker | None] = [site.worker(lease_s=1) for _ in range(WORKERS)]
        schedules = _schedules(site)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for place in entropy.sample(range(WORKERS), entropy.choice([1, 1, 1, 2])):
                worker = workers[place]
                if worker is not None:
                    worker.signal(signal.SIGKILL)
                    report.kills += 1
                workers[place] = None
            time.sleep(entropy.uniform(0.2, 1.5))  # sleep: the time in which fewer workers must do
            workers = [site.worker(lease_s=1) if worker is None else worker for worker in workers]
            time.sleep(entropy.uniform(0.2, 1.0))  # sleep: the time until the next kill
        for schedule in schedules:
            schedule.pause("the end")
        ledgers = [schedule.ticks(limit=100_000) for schedule in schedules]
        _settle(site, schedules, report)
        for schedule, ledger in zip(schedules, ledgers, strict=True):
            _examine(schedule.name, ledger[::-1], report)
    return report


def _schedules(site: Site) -> list[ScheduleHandle]:
    """Every second, by a rate and by the clock of a zone; runs may overlap, since workers that run them are killed."""
    app, arguments = site.app, {"value": 1}
    return [
        app.schedule("echo_async", name="rate", every="1s", overlap="allow", arguments=arguments),
        app.schedule(
            "echo", name="clock", cron="* * * * * *", tz="Asia/Kathmandu", overlap="allow", arguments=arguments
        ),
        app.schedule("echo_async", name="half", every="1s", phase="0.5s", overlap="allow", arguments=arguments),
    ]


def _settle(site: Site, schedules: list[ScheduleHandle], report: Report) -> None:
    """Waits for the end of every tick's execution. One that was alone on three killed workers may have failed."""
    statuses: dict[str, str] = {}

    def have_ended() -> bool:
        ticks = [tick for schedule in schedules for tick in schedule.ticks(limit=100_000)]
        statuses.update((tick.execution_id, str(tick.status)) for tick in ticks if tick.execution_id is not None)
        return all(status in ("success", "failed") for status in statuses.values())

    with contextlib.suppress(AssertionError):
        eventually(have_ended, SETTLE_S)
    for id, status in statuses.items():
        if status != "success":
            info = site.app.handle(id).info()
            if (info.status, info.reason) == ("failed", "crash_loop"):
                report.crash_loops += 1
            else:
                words = f"{info.reason}, {info.attempt_count} attempts, {info.crashes} crashes, fence {info.fence}"
                report.problems.append(f"execution {id} is {info.status}: {words}")


def _examine(name: str, ledger: list[Tick], report: Report) -> None:
    """A tick that came due just before the pause at the end, and was not fired yet, is the pause's."""
    if ledger and (ledger[-1].outcome, ledger[-1].count) == ("missed", 1):
        ledger = ledger[:-1]
    for before, after in itertools.pairwise(ledger):
        if after.at - before.until != SECOND:
            report.problems.append(f"{name}: nothing is known of the ticks between {before.until} and {after.at}")
    for tick in ledger:
        if tick.outcome != "fired" or tick.count != 1 or tick.execution_id is None:
            report.problems.append(f"{name}: the tick at {tick.at} has the outcome {tick.outcome}")
    started = [tick.execution_id for tick in ledger]
    if len(set(started)) != len(started):
        report.problems.append(f"{name}: two ticks have one execution")
    late = sorted((tick.decided_at - tick.at) / SECOND for tick in ledger)
    report.ticks += len(ledger)
    report.late_p99_s = max(report.late_p99_s, late[int(len(late) * 0.99)])
    report.latest_s = max(report.latest_s, late[-1])
