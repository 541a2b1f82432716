"""A process dies at an exact point: an accepted execution ends once, and a refused call leaves nothing."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import Handle
from rota.store import migrate
from tests.faults.conftest import on_both
from tests.faults.trial import PATIENCE_S, Trial, eventually, every_tick_is_known_once
from tests.kill.effects import Answer
from tests.kill.fleet import REPOSITORY, Program
from tests.kill.jobs import CHARGE
from tests.support import postgres
from tests.support.proving import proof
from tests.support.workers import is_alive

pytestmark = pytest.mark.timeout(3 * PATIENCE_S)

LONG_S = 600.0
"""A lease that cannot have been what brought the work back."""


# --- Clients ---


def test_client_dies_before_the_commit(trial: Trial) -> None:
    ticket = trial.asked(keyed=True)
    with trial.hold("ready") as held:
        client = trial.client(ticket)
        eventually(held.waiting, what="a process that waits for the database")
        client.kill()
        client.communicate()
        held.drop_the_waiting()
    assert trial.executions() == []
    _ask_again(trial, ticket)
    trial.worker()
    trial.check()


def test_client_dies_after_the_commit_and_before_the_answer(trial: Trial) -> None:
    """Its output goes to a pipe that is full, so that it commits and then gets no further."""
    ticket = trial.asked(keyed=True)
    reading, writing = os.pipe()
    room = fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)
    assert os.write(writing, b"x" * room) == room
    client = trial.client(ticket, stdout=writing)
    eventually(trial.executions, what="a commit")
    client.kill()
    client.communicate()
    os.close(writing)
    os.close(reading)
    id = _ask_again(trial, ticket)
    assert [execution.id for execution in trial.executions()] == [id]
    trial.worker()
    trial.check()


def _ask_again(trial: Trial, ticket: str) -> str:
    client = trial.client(ticket)
    id, errors = client.communicate(timeout=PATIENCE_S)
    assert client.returncode == 0, errors
    trial.answered(ticket, id.strip(), keyed=True)
    return id.strip()


# --- Schedulers ---


def test_scheduler_dies_between_two_ticks(trial: Trial) -> None:
    first = trial.worker()
    rate = trial.schedule(name="rate", every="1s")
    eventually(lambda: len(rate.ticks()) >= 1, what="a tick")
    _kill(first)
    before = rate.ticks()
    trial.worker()
    eventually(lambda: len(rate.ticks()) >= len(before) + 2, what="more ticks")
    rate.pause()
    assert {(tick.at, tick.execution_id) for tick in before} <= {(tick.at, tick.execution_id) for tick in rate.ticks()}
    every_tick_is_known_once(rate)
    trial.check()


def test_scheduler_dies_after_the_commit_of_a_tick(trial: Trial) -> None:
    """The execution of the tick has not run, because this worker serves another queue: it must not be started twice."""
    first = trial.worker("--queues", "elsewhere")
    rate = trial.schedule(name="rate", every="1s")
    eventually(rate.ticks, what="a tick")
    _kill(first)
    (*_, tick) = rate.ticks()
    assert tick.execution_id is not None
    assert trial.history(trial.app.handle(tick.execution_id)) == []
    trial.worker()
    eventually(lambda: len(rate.ticks()) >= 2, what="another tick")
    rate.pause()
    assert trial.result(trial.app.handle(tick.execution_id))
    every_tick_is_known_once(rate)
    trial.check()


# --- Workers ---


@on_both
def test_worker_dies_after_the_claim(trial: Trial) -> None:
    """Two executions are claimed at once, and the first blocks the event loop so that the second does not start."""
    blocking, x = trial.enqueue_all(2, "blocking", gate="go")
    first = trial.worker()
    trial.wait_for(blocking, "start")
    assert trial.is_running(x)
    trial.worker()
    trial.joined(2)
    _kill(first)
    trial.open("go")
    for handle in (blocking, x):
        _ran_again(trial, handle)
    assert {one.fence for one in trial.history(x) if one.status == "lost"} - set(trial.fences(x, "start"))
    trial.check()


def test_worker_dies_in_the_function(trial: Trial) -> None:
    x = trial.enqueue("stepped", before="go")
    first = trial.worker()
    trial.wait_for(x, "start")
    trial.worker()
    trial.joined(2)
    _kill(first)
    trial.open("go")
    _ran_again(trial, x)
    assert [answer for _, answer in trial.charges(x)] == [Answer.DONE]
    trial.check()


def test_worker_dies_after_the_effect_and_before_the_outcome_is_stored(trial: Trial) -> None:
    """The function has returned, and what it returned waits for the database."""
    x = trial.enqueue("stepped", after="go")
    first = trial.worker()
    trial.wait_for(x, CHARGE)
    with trial.hold("finished", "running") as held:
        trial.open("go")
        trial.wait_for(x, "end")
        eventually(held.waiting, what="a process that waits for the database")
        _kill(first)
        held.drop_the_waiting()
    assert trial.is_running(x)
    trial.worker()
    _ran_again(trial, x)
    first_answer, *others = [answer for _, answer in trial.charges(x)]
    assert (first_answer, set(others)) == (Answer.DONE, {Answer.ALREADY})
    trial.check()


def test_worker_dies_after_the_outcome_is_stored(trial: Trial) -> None:
    first = trial.worker()
    x = trial.enqueue("stepped")
    trial.result(x)
    _kill(first)
    ended = len(trial.history(x))
    trial.worker()
    assert trial.result(trial.enqueue("stepped"))
    assert [attempt.status for attempt in trial.history(x)][-1] == "success"
    assert len(trial.history(x)) == ended
    trial.check()


def test_worker_dies_in_a_heartbeat(trial: Trial) -> None:
    """It has nothing else to write: its only execution waits at a gate."""
    x = trial.enqueue("stepped", before="go")
    first = trial.worker()
    trial.wait_for(x, "start")
    with trial.hold("worker") as held:
        eventually(held.waiting, what="a process that waits for the database")
        _kill(first)
        held.drop_the_waiting()
    trial.worker()
    trial.open("go")
    _ran_again(trial, x)
    trial.check()


def _kill(worker: Program) -> None:
    """The supervisor; its children die with it."""
    worker.process.signal(signal.SIGKILL)
    worker.wait(PATIENCE_S)


def _ran_again(trial: Trial, x: Handle[Any]) -> None:
    fence = trial.result(x)
    *before, last = trial.history(x)
    assert (last.fence, last.status) == (fence, "success")
    assert "lost" in {attempt.status for attempt in before}


# --- Supervisors and children ---


def test_supervisor_dies_and_its_child_could_survive(trial: Trial) -> None:
    """Without the parent-death signal, and in the middle of an execution: the child must exit by itself."""
    x = trial.enqueue("unleashed", gate="go")
    first = trial.worker()
    trial.wait_for(x, "start")
    child = trial.child(first)
    _kill(first)
    eventually(child.is_gone, what="the end of the child")
    trial.worker()
    trial.open("go")
    _ran_again(trial, x)
    trial.check()


def test_child_dies_by_a_signal(trial: Trial) -> None:
    x = trial.enqueue("stepped", before="go")
    worker = trial.worker(lease_s=LONG_S)
    trial.wait_for(x, "start")
    killed_at = time.time_ns() // 1000
    trial.child(worker).signal(signal.SIGSEGV)
    (lost,) = eventually(lambda: trial.history(x), what="the end of the attempt")
    print(f"noticed after {(lost.finished_at - killed_at) / 1000:.0f} ms")
    assert (lost.status, lost.reason) == ("lost", "crashed")
    assert "was killed by SIGSEGV" in (lost.error or "")
    trial.open("go")
    assert trial.result(x) == 2
    trial.check()


def test_all_processes_die_at_once(trial: Trial) -> None:
    xs = trial.enqueue_all(12, "stepped", before="go")
    workers = [trial.worker("--processes", "2"), trial.worker()]
    for x in xs:
        trial.wait_for(x, "start")
    client = trial.client(trial.asked())
    for worker in workers:
        worker.process.signal(signal.SIGKILL)
    client.kill()
    client.communicate()
    for worker in workers:
        worker.wait(PATIENCE_S)
    trial.worker()
    trial.open("go")
    for x in xs:
        _ran_again(trial, x)
    trial.check()


def test_child_dies_twice_within_a_second(trial: Trial) -> None:
    """The second child dies as soon as it has started, without an execution."""
    x = trial.enqueue("stepped", before="go")
    worker = trial.worker(lease_s=LONG_S)
    trial.wait_for(x, "start")
    first = trial.child(worker)
    first.signal(signal.SIGKILL)
    killed_at = time.monotonic()
    eventually(lambda: first.pid not in [child.pid for child in worker.children()], what="the end of the first")
    second = trial.child(worker)
    second.signal(signal.SIGKILL)
    print(f"{time.monotonic() - killed_at:.2f} s between the two")
    eventually(second.is_gone, what="the end of the second")
    trial.open("go")
    assert trial.result(x) == 2
    assert [attempt.status for attempt in trial.history(x)] == ["lost", "success"]
    trial.check()


@pytest.mark.parametrize("survivor", ["supervisor", "none"])
def test_worker_dies_together_with_its_spawner(trial: Trial, survivor: str) -> None:
    """As after `pkill -9 -f rota`: a process of its command with its own session could survive."""
    worker = trial.worker()
    x = trial.enqueue("remaining")
    left = trial.left()
    child = trial.child(worker)
    (spawner,) = trial.spawners(worker)
    child.signal(signal.SIGSTOP)  # So that it has no time to notice.
    for victim in (spawner, child) if survivor == "supervisor" else (worker.process, spawner, child):
        victim.signal(signal.SIGKILL)
    if survivor == "none":
        worker.wait(PATIENCE_S)
        trial.worker()
    eventually(lambda: not is_alive(left), what="the end of what was left behind")
    assert trial.result(x) == 2
    trial.check()


def test_supervisor_dies_and_a_daemon_of_a_command_could_survive(trial: Trial) -> None:
    """What a command has started in a session of its own ends with the supervisor, before another one comes."""
    first = trial.worker()
    x = trial.enqueue("remaining")
    left = trial.left()
    _kill(first)
    eventually(lambda: not is_alive(left), what="the end of what was left behind")
    trial.worker()
    _ran_again(trial, x)
    trial.check()


def test_supervisor_dies_and_the_program_of_a_thread_could_survive(trial: Trial) -> None:
    """The kernel ends the worker process, and the spawner what its jobs have started."""
    first = trial.worker()
    x = trial.enqueue("starting", gate="go")
    left = trial.left()
    _kill(first)
    eventually(lambda: not is_alive(left), what="the end of what was left behind")
    trial.worker()
    trial.open("go")
    _ran_again(trial, x)
    trial.check()


# --- Migrations ---


@pytest.mark.parametrize("database", ["sqlite", proof("postgres")])
def test_rota_dies_half_way_through_a_migration(tmp_path: Path, database: str) -> None:
    """On a server the migration waits for a session that creates one of its last objects; on a file it dies there."""
    late = "CREATE VIEW state"
    assert any(late in migration.text for migration in migrate.known("sqlite"))
    if database == "sqlite":
        url = f"sqlite:///{tmp_path}/rota.db"
        assert _migrate(tmp_path, url, "tests.faults.dying_migration", late).wait(PATIENCE_S) == -signal.SIGKILL
    else:
        url = postgres.shared().create_database()
        with psycopg.connect(url) as other:
            other.execute("CREATE SCHEMA rota")
            other.commit()
            other.execute("CREATE TABLE rota.state ()")
            dying = _migrate(tmp_path, url, "rota", "migrate")
            eventually(lambda: _has_waiting(url), what="a migration that waits")
            dying.kill()
            assert dying.wait(PATIENCE_S) == -signal.SIGKILL
            other.rollback()
    with Trial(tmp_path, url) as trial:
        trial.worker(lease_s=LONG_S)
        assert trial.result(trial.enqueue("stepped")) == 1
        trial.check()


def _migrate(folder: Path, url: str, *words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "ROTA_URL": url, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen([sys.executable, "-m", *words], cwd=folder, env=environment)


def _has_waiting(url: str) -> bool:
    query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(url) as connection:
        return bool(connection.execute(query).fetchall())
