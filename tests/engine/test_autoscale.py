"""A worker that scales its processes with the load: the decision by itself, and real processes."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from rota import Handle, Status
from rota.domain.headcount import Headcount
from rota.engine import autoscale
from rota.engine.autoscale import Load, Mood, decide
from rota.ops.fleet import ask_to_drain
from rota.sdk.app import registry_of
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, Worker, is_alive

SLOTS = 10
QUIET_S = 30.0
ALLOWED = Headcount(2, 8)


def played(
    demand: Callable[[float], float], seconds: float, *, allowed: Headcount = ALLOWED, start: int = 2
) -> Iterator[tuple[float, int]]:
    """The number of processes at each check, given the number of slots that the load needs at each time."""
    mood, processes, now = Mood(), start, 0.0
    while now < seconds:
        wanted, slots = demand(now), processes * SLOTS
        load = Load(
            processes=processes,
            slots=SLOTS,
            used=min(wanted, slots),
            is_pressed=wanted > slots,
            has_idle=wanted <= slots - SLOTS,
        )
        mood, processes = decide(mood, load, now, allowed, QUIET_S)
        yield now, processes
        now += autoscale.LOOK_S


def changes(counts: Iterator[tuple[float, int]]) -> int:
    sizes = [processes for _, processes in counts]
    return sum(one != other for one, other in pairwise(sizes))


def test_a_worker_scales_up_one_by_one_to_the_maximum() -> None:
    sizes = [processes for _, processes in played(lambda _: 1_000, 60)]
    assert sizes == sorted(sizes)
    assert set(sizes) == set(range(2, 9))


def test_a_short_peak_does_not_scale_up() -> None:
    assert changes(played(lambda now: 1_000 if now % 10 == 0 else 15, 600)) == 0


def test_an_idle_worker_scales_down_to_the_minimum() -> None:
    counts = list(played(lambda _: 0, 600, start=8))
    sizes = [processes for _, processes in counts]
    assert sizes == sorted(sizes, reverse=True)
    assert set(sizes) == set(range(2, 9))
    assert next(now for now, processes in counts if processes < 8) >= QUIET_S


def test_a_worker_keeps_the_processes_that_the_load_needs() -> None:
    sizes = [processes for _, processes in played(lambda _: 33, 3600, start=8)]
    assert sizes[-1] == 5  # Four would be full to more than seven tenths.


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("period_s", [2, 5, 20, 50, 70, 100, 200])
def test_a_load_that_alternates_quickly_stops_causing_scaling(period_s: int, share: float) -> None:
    """For any rhythm of the load, starting and stopping ends after a while."""
    sizes = list(played(lambda now: 75.0 if now % period_s < share * period_s else 0.0, 2 * 3600))
    assert changes(iter(sizes)) <= 30
    assert changes(iter(sizes[3600:])) == 0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("period_s", [400, 700, 1500, 3000])
def test_a_load_that_alternates_slowly_scales_once_each_time(period_s: int, share: float) -> None:
    periods = 10
    sizes = played(lambda now: 75.0 if now % period_s < share * period_s else 0.0, periods * period_s)
    assert changes(sizes) <= periods * 2 * (ALLOWED.most - ALLOWED.least)


def test_a_process_that_is_needed_soon_after_it_stopped_is_kept_longer_the_next_time() -> None:
    gone = Mood(let_go_at=100.0, pressed_since=110.0)
    pressed = Load(processes=2, slots=SLOTS, used=20, is_pressed=True)
    mood, wanted = decide(gone, pressed, 112.0, ALLOWED, QUIET_S)
    assert (wanted, mood.patience) == (3, 2)
    mood, wanted = decide(Mood(let_go_at=100.0, pressed_since=990.0, patience=4), pressed, 1000.0, ALLOWED, QUIET_S)
    assert (wanted, mood.patience) == (3, 1)


def test_a_busy_process_is_not_stopped() -> None:
    busy = Load(processes=4, slots=SLOTS, used=4, has_idle=False)
    mood = Mood(quiet_since=0.0)
    mood, wanted = decide(mood, busy, 1_000.0, ALLOWED, QUIET_S)
    assert wanted == 4
    _, wanted = decide(mood, Load(processes=4, slots=SLOTS, used=3, has_idle=True), 1_001.0, ALLOWED, QUIET_S)
    assert wanted == 3


def test_a_worker_with_a_fixed_number_of_processes_does_not_scale() -> None:
    assert changes(played(lambda now: 1_000 if now < 300 else 0, 600, allowed=Headcount(3, 3), start=3)) == 0


# Real processes.


def gates(site: Site, count: int) -> list[Handle[str]]:
    return [site.enqueue("gated", f"go{number}") for number in range(count)]


def grown(site: Site, worker: Worker, count: int) -> list[int]:
    eventually(lambda: worker.check() and len(on_duty(site)) == count, 60, what=f"{count} processes")
    return worker.children()


def on_duty(site: Site) -> list[int]:
    return [row.id for row in site.live() if row.state == "live"]


def test_a_worker_scales_up_and_down_without_interrupting_a_job(site: Site) -> None:
    worker = site.worker("--processes", "1-3", "--concurrency", "2", quiet_s=1, lease_s=5)
    assert len(worker.children()) == 1
    handles = gates(site, 8)
    assert len(grown(site, worker, 3)) == 3
    eventually(lambda: len(site.journal("started")) == 6, what="six that run")
    rows = site.live()
    assert {(row.least, row.most, row.concurrency) for row in rows} == {(1, 3, 2)}
    assert len({row.supervisor for row in rows}) == 1
    assert all(row.running <= row.concurrency for row in rows)
    holders = Counter(pid for _, _, pid in site.journal("started"))
    kept = holders.most_common(1)[0][0]
    longest = next(id for id, _, pid in site.journal("started") if pid == kept)
    for number, handle in enumerate(handles):
        if handle.id != longest:
            site.open(f"go{number}")
    for handle in handles:
        if handle.id != longest:
            assert handle.result(PATIENCE_S) == "done"
    # One execution keeps running, for much longer than the grace of a second, in whichever process.
    grown(site, worker, 1)
    eventually(lambda: len(worker.children()) <= 2, what="processes that have gone")
    (last,) = [handle for handle in handles if handle.id == longest]
    assert last.status() is Status.RUNNING
    site.open(f"go{handles.index(last)}")
    assert last.result(PATIENCE_S) == "done"
    assert {handle.info().fence for handle in handles} == {1}
    assert site.journal("told") == []
    eventually(lambda: len(worker.children()) == 1, what="a single process")
    assert site.enqueue("echo", 1).result(PATIENCE_S) == 1


def test_a_retiring_process_finishes_executions_that_it_claimed_last(site: Site) -> None:
    """Executions arrive again and again just when processes retire: claimed executions finish, without a grace."""
    worker = site.worker("--processes", "1-3", "--concurrency", "1", quiet_s=0.1, grace_s=0, lease_s=5)
    done: list[Handle[str]] = []
    for round_ in range(3):
        some = [site.enqueue("gated_async", f"go{round_}") for _ in range(4)]
        grown(site, worker, 3)
        site.open(f"go{round_}")
        quick = [site.enqueue("gated", f"go{round_}") for _ in range(10)]
        assert {x.result(PATIENCE_S) for x in (*some, *quick)} == {"done"}
        done += [*some, *quick]
    assert site.journal("told") == []
    assert {attempt.status for x in done for attempt in x.attempts()} <= {"success", "given_back"}
    assert {(x.info().attempt_count, x.info().crashes) for x in done} == {(1, 0)}


def test_a_child_that_is_killed_after_scaling_up_is_replaced_and_its_executions_finish(site: Site) -> None:
    worker = site.worker("--processes", "1-3", "--concurrency", "1", quiet_s=1, lease_s=5)
    handles = gates(site, 4)
    grown(site, worker, 3)
    eventually(lambda: len(site.journal("started")) == 3, what="three that run")
    victim, _, pid = site.journal("started")[-1]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid), what="the death of a child")
    grown(site, worker, 3)
    eventually(lambda: len(site.journal("started")) >= 4, what="another start")
    assert len(worker.children()) == 3
    for number in range(4):
        site.open(f"go{number}")
    assert {handle.result(PATIENCE_S) for handle in handles} == {"done"}
    crashes = {handle.id: handle.info().crashes for handle in handles}
    assert {id for id, count in crashes.items() if count} == {victim}
    eventually(lambda: len(worker.children()) == 1, 60, what="a single process")


def test_a_worker_that_scales_up_can_be_drained(site: Site) -> None:
    worker = site.worker("--processes", "1-8", "--concurrency", "1", quiet_s=1, grace_s=600, lease_s=5)
    handles = [site.enqueue("gated", "go") for _ in range(20)]
    eventually(lambda: len(worker.children()) >= 3, 60, what="a worker that grows")
    worker.signal(signal.SIGTERM)
    eventually(lambda: {row.state for row in site.live()} == {"draining"}, what="a draining worker")
    site.open("go")
    assert worker.wait() == 0
    assert site.live() == []
    for handle in handles:
        status, info = handle.status(), handle.info()
        assert status in (Status.SUCCESS, Status.QUEUED)
        assert info.crashes == 0
        assert status is Status.SUCCESS or handle.id not in {id for id, _, _ in site.journal("started")}
    assert site.journal("told") == []


def test_a_retiring_process_is_drained_with_its_worker(site: Site) -> None:
    """A retiring process has no time limit, but when its worker is drained it has only the grace."""
    worker = site.worker("--processes", "1-2", "--concurrency", "2", quiet_s=0.1, grace_s=1, lease_s=5)
    handles = gates(site, 5)
    grown(site, worker, 2)
    eventually(lambda: len(site.journal("started")) == 4, what="four that run")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert {handle.status() for handle in handles} == {Status.QUEUED}
    assert {handle.info().crashes for handle in handles} == {0}


def test_executions_that_a_worker_cannot_take_do_not_scale_it_up(site: Site) -> None:
    """A queue that the worker does not serve is full; the queues that it serves fit into one process."""
    worker = site.worker("--processes", "1-3", "--concurrency", "1", "--queues", "default", quiet_s=1, lease_s=5)
    first = site.enqueue("gated", "go0")
    site.wait_started(first)
    others = [site.enqueue("mail") for _ in range(5)]
    # Time enough for three checks more than a scale-up takes.
    eventually(lambda: beats(site) >= 5, what="some heartbeats")
    assert len(worker.children()) == 1
    more = site.enqueue("gated", "go0")
    grown(site, worker, 2)
    site.wait_started(more)
    site.open("go0")
    assert {first.result(PATIENCE_S), more.result(PATIENCE_S)} == {"done"}
    assert {x.status() for x in others} == {Status.QUEUED}


def beats(site: Site) -> float:
    (row,) = site.live()
    return (row.heartbeat_at - row.started_at) / 1_000_000


def test_a_process_that_an_operator_drained_is_not_replaced(site: Site) -> None:
    worker = site.worker("--processes", "1-3", "--concurrency", "1", quiet_s=600, lease_s=1)
    handles = gates(site, 5)
    grown(site, worker, 3)
    from_outside = max(on_duty(site))
    registry_of(site.app).connection.store().transact(ask_to_drain, "default", from_outside, "test")
    for number in range(3):
        site.open(f"go{number}")
    eventually(lambda: from_outside not in [row.id for row in site.live()], what="the end of a process")
    eventually(lambda: sum(x.status() is Status.RUNNING for x in handles) == 2, what="two that run")
    assert len(on_duty(site)) == 2
    for number in range(3, 5):
        site.open(f"go{number}")
    assert {x.result(PATIENCE_S) for x in handles} == {"done"}
