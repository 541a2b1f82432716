"""Prefetching: an execution that waits in a worker process for a slot starts soon, or is given back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, cast

import msgspec
import pytest

from rota import App, Context, Status
from rota.clock import ManualClock, SystemClock
from rota.domain.claim import Claim
from rota.domain.claim_order import SLACK
from rota.domain.job import Definition, content
from rota.domain.outcome import Cancelled, GivenBack, Succeeded
from rota.domain.status import Reason
from rota.engine.attempt import Stop
from rota.engine.capacity import HORIZON_S, MOST_AHEAD, Pace
from rota.engine.completer import Completer
from rota.engine.slot_queue import TICK_S
from rota.engine.worker import Worker
from rota.ops.finish import Finished
from rota.sdk.job import registered
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site

NOT_BEGUN = GivenBack(Reason.NOT_BEGUN)
app = App("ahead", url="sqlite:///:memory:")


@app.job
async def wait() -> None:
    await asyncio.Event().wait()


@app.job
async def rest() -> None:
    await asyncio.sleep(0.01)  # sleep: the work of the job


visitor: ContextVar[str] = ContextVar("visitor", default="none")
entered, left = threading.Event(), threading.Event()


@app.job
def visit_in_thread() -> str:
    before = visitor.get()
    visitor.set("thread")
    return before


@app.job
async def visit() -> str:
    before = visitor.get()
    visitor.set("task")
    return before


@app.job
def obey(ctx: Context) -> None:
    left.clear()
    entered.set()
    while not ctx.cancelled:
        ctx.wait_cancelled(PATIENCE_S)
    time.sleep(0.05)  # sleep: the job needs a moment to stop
    left.set()


RENAMED = content(Definition(name="renamed", target={"kind": "function", "name": "obey"}))


class Outcomes:
    """Stands for the completer."""

    def __init__(self) -> None:
        self.reports: list[Finished] = []

    def add(self, report: Finished, *, claim_is_near: bool = False) -> None:
        self.reports.append(report)

    def kinds(self) -> dict[str, object]:
        return {report.id: report.outcome for report in self.reports}


class Bench:
    """A worker with two slots that may hold three more."""

    def __init__(self) -> None:
        self.outcomes = Outcomes()
        self.pace = Pace(SystemClock(), 2)
        self.pace.ahead = 3
        targets = {name: registered(job).target for name, job in app.jobs.items()}
        self.worker = Worker(targets, cast("Completer", self.outcomes), SystemClock(), 2, self.pace, stop_grace_s=0.2)

    def take(self, *jobs: str) -> None:
        for number, job in enumerate(jobs):
            self.take_one(f"{job}{number}", job)

    def take_one(self, id: str, job: str, rank: int = 0, definition: str | None = None) -> None:
        now = SystemClock().now()
        claim = Claim(id, 1, rank, 1, 0, 0, now, now, None, job, "{}", None, now, now)
        self.worker.take(msgspec.structs.replace(claim, definition=definition))


def on_loop(test: Callable[[Bench], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    async def run() -> None:
        bench = Bench()
        try:
            await asyncio.wait_for(test(bench), PATIENCE_S)
        finally:
            bench.worker.close()

    def sync() -> None:
        asyncio.run(run())

    sync.__doc__ = test.__doc__
    return sync


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.005)  # sleep: between two checks


@on_loop
async def test_prefetched_executions_start_in_order_when_slots_become_free(bench: Bench) -> None:
    bench.take(*["rest"] * 5)
    assert bench.worker.free == 0
    assert bench.worker.held() == [f"rest{number}" for number in range(5)]
    await until(lambda: bench.worker.is_idle)
    assert [report.id for report in bench.outcomes.reports] == [f"rest{number}" for number in range(5)]
    assert {type(report.outcome) for report in bench.outcomes.reports} == {Succeeded}
    assert bench.pace.ended == 5


@on_loop
async def test_executions_with_a_higher_priority_overtake_prefetched_ones_in_their_own_order(bench: Bench) -> None:
    bench.take("rest", "rest")
    for number in range(3):
        bench.take_one(f"normal{number}", "rest", rank=10 * SLACK + number)
    for number in range(3):
        bench.take_one(f"high{number}", "rest", rank=SLACK + number)
    await until(lambda: bench.worker.is_idle)
    ended = [report.id for report in bench.outcomes.reports][2:]
    assert ended == ["high0", "high1", "high2", "normal0", "normal1", "normal2"]


@on_loop
async def test_an_overtaken_execution_starts_before_it_would_be_given_back(bench: Bench) -> None:
    """A steady flow of urgent executions makes it wait, but slots become free."""
    bench.take("rest", "rest")
    bench.take_one("low", "rest", rank=10 * SLACK)
    number = 0
    while "low" in bench.worker.held():
        while len(bench.worker.held()) < 5:
            number += 1
            bench.take_one(f"high{number}", "rest", rank=number)
        await asyncio.sleep(0)
    ended = [report.id for report in bench.outcomes.reports]
    assert len(ended) > 5, "it was overtaken"
    assert {type(report.outcome) for report in bench.outcomes.reports} == {Succeeded}


@on_loop
async def test_a_prefetched_execution_without_a_free_slot_is_given_back(bench: Bench) -> None:
    bench.take("wait", "wait", "rest", "rest")
    assert bench.outcomes.reports == []
    await until(lambda: len(bench.outcomes.reports) == 2)
    assert bench.outcomes.kinds() == {"rest2": NOT_BEGUN, "rest3": NOT_BEGUN}
    assert bench.worker.held() == ["wait0", "wait1"]
    await asyncio.sleep(4 * TICK_S)  # sleep: the time in which nothing more may happen
    assert len(bench.outcomes.reports) == 2


@on_loop
async def test_each_prefetched_execution_has_its_own_time_to_wait(bench: Bench) -> None:
    bench.take("wait", "wait", "rest")
    await asyncio.sleep(1.6 * TICK_S)  # sleep: the first of two prefetched executions has waited for long
    bench.take_one("late", "rest", rank=-SLACK - 1)  # Overtaking does not make it older.
    await until(lambda: len(bench.outcomes.reports) == 1)
    assert bench.worker.held() == ["wait0", "wait1", "late"]
    await until(lambda: len(bench.outcomes.reports) == 2)


@on_loop
async def test_a_prefetched_execution_is_not_given_back_because_its_process_stood_still(bench: Bench) -> None:
    bench.take(*["rest"] * 5)
    await asyncio.sleep(0)  # The first two have begun.
    time.sleep(4 * TICK_S)  # noqa: ASYNC251  # sleep: a machine that has no processor for this process
    await until(lambda: bench.worker.is_idle)
    assert {type(report.outcome) for report in bench.outcomes.reports} == {Succeeded}


@on_loop
async def test_a_prefetched_execution_can_be_cancelled(bench: Bench) -> None:
    bench.take("wait", "wait", "rest")
    bench.worker.stop("rest2", Stop.CANCEL)
    assert bench.outcomes.kinds() == {"rest2": Cancelled()}


@on_loop
async def test_prefetched_executions_of_one_task_share_no_context_variables(bench: Bench) -> None:
    """The task that has waited for a thread runs the next execution, whether that has a thread or not."""
    bench.take("visit_in_thread", "visit_in_thread", "visit_in_thread", "visit", "visit")
    await until(lambda: bench.worker.is_idle)
    assert [report.outcome for report in bench.outcomes.reports] == [Succeeded('"none"')] * 5


@on_loop
async def test_a_prefetched_execution_starts_after_one_that_was_stopped_in_its_thread(bench: Bench) -> None:
    entered.clear()
    bench.take("wait", "obey", "rest")
    await until(entered.is_set)
    bench.worker.stop("obey1", Stop.CANCEL)
    await until(lambda: len(bench.outcomes.reports) == 2)
    assert bench.outcomes.kinds() == {"obey1": Cancelled(), "rest2": Succeeded("null")}


@on_loop
async def test_a_thread_of_a_job_as_data_is_waited_for_when_it_is_cancelled(bench: Bench) -> None:
    """Its outcome would otherwise be reported while the function still runs, and a retry could run beside it."""
    entered.clear()
    bench.take_one("first", "renamed", definition=RENAMED)
    await until(entered.is_set)
    bench.worker.stop("first", Stop.CANCEL)
    await until(lambda: bench.worker.is_idle)
    assert left.is_set()
    assert bench.outcomes.kinds() == {"first": Cancelled()}


@on_loop
async def test_a_worker_that_stops_starting_executions_gives_back_prefetched_and_new_ones(bench: Bench) -> None:
    bench.take("wait", "wait", "rest")
    bench.worker.begin_no_more()
    bench.take_one("late", "rest")
    assert bench.outcomes.kinds() == {"rest2": NOT_BEGUN, "late": NOT_BEGUN}
    assert bench.worker.held() == ["wait0", "wait1"]


@pytest.mark.parametrize(
    ("ended", "seconds", "ahead"),
    [
        (0, 1.0, 0),
        (9, HORIZON_S, 0),  # Slots that are not all used again within the horizon
        (10, HORIZON_S, 10),
        (25, HORIZON_S, 25),
        (25, 2 * HORIZON_S, 12),
        (700, HORIZON_S, 700),
        (2000, HORIZON_S, MOST_AHEAD),
        (49, HORIZON_S / 2, 0),  # Too few, and too soon to tell
        (50, HORIZON_S / 2, 50),  # A burst; the next executions may be slow ones
        (1000, HORIZON_S / 2, 1000),
    ],
)
def test_a_worker_prefetches_more_the_faster_its_slots_become_free(ended: int, seconds: float, ahead: int) -> None:
    clock = ManualClock()
    pace = Pace(clock, 10)
    pace.ended = ended
    clock.advance(seconds)
    pace.measure(10)
    assert pace.ahead == ahead


@pytest.mark.parametrize(("ended", "prefetches"), [(100, False), (199, False), (200, True)])
def test_slow_executions_that_end_together_are_not_taken_for_a_burst(ended: int, prefetches: bool) -> None:
    clock = ManualClock()
    pace = Pace(clock, 100)
    clock.advance(HORIZON_S)
    pace.measure(0)  # 100 attempts run.
    pace.ended = ended
    clock.advance(HORIZON_S / 4)
    pace.measure(100)
    assert (pace.ahead > 0) is prefetches


def test_a_worker_that_prefetches_decides_anew_after_the_horizon_or_when_all_its_places_were_used_again() -> None:
    clock = ManualClock()
    pace = Pace(clock, 10)
    pace.ahead, pace.ended = 100, 109
    clock.advance(HORIZON_S / 2)
    pace.measure(110)
    assert (pace.ahead, pace.ended) == (100, 109)
    pace.ended = 110
    pace.measure(110)
    assert (pace.ahead, pace.ended) == (110, 0)
    pace.ended = 2000
    clock.advance(HORIZON_S)
    pace.measure(120)
    assert (pace.ahead, pace.ended) == (MOST_AHEAD, 0)


def test_slow_executions_behind_a_few_short_ones_are_not_prefetched_in_hundreds() -> None:
    clock = ManualClock()
    pace = Pace(clock, 20)
    pace.ended = 60
    clock.advance(HORIZON_S / 20)
    pace.measure(20)
    assert pace.ahead == 60
    clock.advance(HORIZON_S)
    pace.measure(0)
    assert pace.ahead == 0


def test_a_worker_that_prefetched_slow_executions_leaves_the_rest_to_others(site: Site) -> None:
    fast = site.worker("--concurrency", "2")
    echo, gated = site.app.jobs["echo"], site.app.jobs["gated_async"]
    before = echo.options(priority="high").enqueue_many(range(400))
    slow = [gated.enqueue("go"), gated.enqueue("go")]
    after = echo.options(priority="low").enqueue_many(range(100))
    for handle in slow:
        site.wait_started(handle)
    assert [handle.result(PATIENCE_S) for handle in before] == list(range(400))
    eventually(lambda: {handle.status() for handle in after} == {Status.QUEUED}, what="nothing that waits for a slot")
    site.worker("--concurrency", "2")
    assert [handle.result(PATIENCE_S) for handle in after] == list(range(100))
    site.open("go")
    assert [handle.result(PATIENCE_S) for handle in slow] == ["done", "done"]
    ran = [id for id, _, _ in site.journal("ran")]
    assert len(ran) == len(set(ran)) == 500
    assert {attempt.reason for handle in after for attempt in handle.attempts()} <= {"completed", "not_begun"}
    assert fast.check()
