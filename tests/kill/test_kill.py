"""Workers are killed and stopped; accepted executions end once. ROTA_KILLS and ROTA_KILL_SEED change the run."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rota import Handle
from rota.clock import SystemClock
from rota.sdk.app import registry_of
from rota.store.opening import open_store
from tests.kill import check, effects, evidence, jobs
from tests.kill.check import Witnesses
from tests.kill.databases import database, stop
from tests.kill.effects import Answer
from tests.kill.fleet import START_S, Fleet, Program
from tests.kill.journal import Entry
from tests.kill.processes import Process, wait_until
from tests.kill.report import Plan, table
from tests.kill.run import Run
from tests.support.proving import proof

pytestmark = pytest.mark.xdist_group("kill")

KILLS = int(os.environ.get("ROTA_KILLS", "300"))
POSTGRES_KILLS = int(os.environ.get("ROTA_POSTGRES_KILLS", "60"))
SAMPLE = 3
LEASE_S = 1.0
LONG_S = 600.0
TICKET = "the-one"
DRAIN_S = 30.0


@pytest.fixture(params=["sqlite", proof("postgres")])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database(request.param, tmp_path) as url:
        yield url


@pytest.mark.timeout(300 + 2 * KILLS)
@pytest.mark.parametrize(
    ("database", "kills"),
    [("postgres", SAMPLE), proof("sqlite", KILLS), proof("postgres", POSTGRES_KILLS)],
)
def test_executions_survive_the_deaths_of_their_workers(tmp_path: Path, database: str, kills: int) -> None:
    seed = int(os.environ.get("ROTA_KILL_SEED", random.randrange(1_000_000)))
    # Beside other tests processes wait for a processor: with a short lease they would lose it all the time.
    supervisors, lease_s = (2, 2.0) if kills == SAMPLE else (4, 1.0)
    plan = Plan(
        database=database, kills=kills, seed=seed, supervisors=supervisors, lease_s=lease_s, minutes=2 + kills / 60
    )
    report = Run(plan, tmp_path).run()
    print(table(report))
    assert not report.problems, table(report)


def test_a_worker_stopped_for_three_leases_is_fenced_out(tmp_path: Path, url: str) -> None:
    """It is continued while the next holder still runs, and exits by itself before its supervisor is continued."""
    with (
        Fleet(tmp_path, url, lease_s=LEASE_S, poll_s=0.2) as fleet,
        enqueued(fleet, 2 * LEASE_S, 5 * LEASE_S) as handle,
    ):
        sleeper, (child,) = worker_that_runs(fleet, handle)
        stopped_at = time.monotonic()
        spawners = sleeper.spawners()
        stop([child, sleeper.process, *spawners], url)
        other = fleet.supervisor("other")
        wait_until(lambda: (2, Answer.DONE) in charges(fleet), START_S, "the next holder to act")
        wait_until(lambda: time.monotonic() >= stopped_at + 3 * LEASE_S, START_S, "three leases to pass")
        child.signal(signal.SIGCONT)
        wait_until(child.is_gone, START_S, "the old holder to let go by itself")
        for process in (sleeper.process, *spawners):
            process.signal(signal.SIGCONT)
        for process in (child, *spawners):
            process.close()
        assert handle.result(timeout=START_S) == 2
        drain(sleeper, other)

    # It may have come as far as its effect before it looked at its lease.
    assert charges(fleet) in ([(2, Answer.DONE)], [(2, Answer.DONE), (1, Answer.STALE)])
    assert [(one.fence, one.status) for one in history(fleet, handle)] == [(1, "lost"), (2, "success")]
    assert problems(fleet, handle) == []


def test_executions_of_a_killed_supervisor_restart_within_15_seconds(tmp_path: Path, url: str) -> None:
    with Fleet(tmp_path, url) as fleet, enqueued(fleet, LONG_S) as handle:
        victim, (child,) = worker_that_runs(fleet, handle)
        other = fleet.supervisor("other")
        wait_until(lambda: evidence.read(fleet.url).live_workers == 2, START_S, "the other worker to join")
        killed_at = now()
        victim.process.signal(signal.SIGKILL)
        wait_until(child.is_gone, 2.0, "the child to die with its supervisor")
        child.close()
        assert handle.result(timeout=START_S) == 2
        drain(other)

    assert seconds(killed_at, history(fleet, handle)[1].started_at) <= 15
    assert problems(fleet, handle) == []


def test_a_childs_death_is_noticed_long_before_its_lease_ends(tmp_path: Path, url: str) -> None:
    with Fleet(tmp_path, url) as fleet, enqueued(fleet, LONG_S) as handle:
        supervisor, (child,) = worker_that_runs(fleet, handle)
        killed_at = now()
        child.signal(signal.SIGKILL)
        child.close()
        assert handle.result(timeout=START_S) == 2
        drain(supervisor)

    lost, again = history(fleet, handle)
    # A tenth of a second is usual; the bounds leave room for a machine that is busy with other tests.
    assert seconds(killed_at, lost.finished_at) < 1
    assert seconds(killed_at, again.started_at) < 5
    assert problems(fleet, handle) == []


@contextmanager
def enqueued(fleet: Fleet, first_s: float, next_s: float = 0.0) -> Iterator[Handle[int]]:
    """One execution, before a worker has started."""
    fleet.receiver()
    store = open_store(fleet.url)
    with registry_of(jobs.app).connection.borrowed(store, SystemClock()):
        yield jobs.late.enqueue(TICKET, first_s, next_s)


def worker_that_runs(fleet: Fleet, handle: Handle[int]) -> tuple[Program, list[Process]]:
    """A supervisor and its children, one of which has begun the execution."""
    supervisor = fleet.supervisor("first")
    wait_until(lambda: any(one.effect.id == handle.id for one in effects.recorded(fleet.folder)), START_S, "a start")
    return supervisor, supervisor.children()


def drain(*supervisors: Program) -> None:
    for supervisor in supervisors:
        supervisor.process.signal(signal.SIGTERM)
    assert [supervisor.wait(DRAIN_S) for supervisor in supervisors] == [0] * len(supervisors)


def charges(fleet: Fleet) -> list[tuple[int, Answer]]:
    return [(one.effect.fence, one.answer) for one in effects.recorded(fleet.folder) if one.effect.fenced]


def history(fleet: Fleet, handle: Handle[int]) -> list[evidence.Attempt]:
    return evidence.read(fleet.url).attempts[handle.id]


def problems(fleet: Fleet, handle: Handle[int]) -> list[str]:
    journal = [Entry(TICKET, keyed=False), Entry(TICKET, keyed=False, id=handle.id)]
    return check.problems(Witnesses([journal], effects.recorded(fleet.folder), evidence.read(fleet.url)))


def now() -> int:
    return time.time_ns() // 1000


def seconds(start: int, end: int) -> float:
    return (end - start) / 1_000_000
