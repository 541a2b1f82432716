"""Several workers, processes and queues: which worker runs an execution, and how many run at once."""

from __future__ import annotations

from rota import Status
from tests.engine.conftest import on_both
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site


@on_both
def test_two_workers_on_one_database_share_the_work_and_each_execution_runs_once(site: Site) -> None:
    gates = [site.enqueue("gated", "go") for _ in range(4)]
    site.worker("--concurrency", "2")
    site.worker("--concurrency", "2")
    assert len({site.wait_started(x) for x in gates}) == 2
    handles = site.app.jobs["echo"].enqueue_many(range(2_000))
    site.open("go")
    assert [handle.result(PATIENCE_S) for handle in handles] == list(range(2_000))
    ran = site.journal("ran")
    assert sorted(id for id, _, _ in ran) == sorted(handle.id for handle in handles)
    again = [handle for handle, (_, fence, _) in zip(handles, sorted(ran), strict=True) if fence > 1]
    # On a busy machine a prefetched execution may find no free slot in time, and is given back (`not_begun`).
    assert {attempt.reason for handle in again for attempt in handle.attempts()[:-1]} <= {"not_begun"}
    assert len({pid for _, _, pid in ran}) == 2


def test_a_worker_never_runs_more_at_once_than_it_has_slots(site: Site) -> None:
    site.worker("--concurrency", "3")
    handles = [site.enqueue("gated" if number % 2 else "gated_async", f"go{number}") for number in range(9)]
    for released in range(9):
        eventually(lambda: len(site.journal("started")) >= min(9, released + 3), what="a start")  # noqa: B023
        running = len(site.journal("started")) - len(site.journal("ended"))
        assert running <= 3
        assert sum(handle.status() is Status.RUNNING for handle in handles) <= 3
        started = [id for id, _, _ in site.journal("started")]
        done = {id for id, _, _ in site.journal("ended")}
        first = next(id for id in started if id not in done)
        number = next(number for number, handle in enumerate(handles) if handle.id == first)
        site.open(f"go{number}")
        assert handles[number].result(PATIENCE_S) == "done"
    assert len(site.journal("ended")) == 9


def test_a_worker_with_a_list_of_queues_serves_only_those(site: Site) -> None:
    site.worker("--queues", "mail,other")
    other = site.enqueue("echo", 1)
    assert site.enqueue("mail").result(PATIENCE_S) == "sent"
    assert (other.status(), other.info().fence) == (Status.QUEUED, 0)
    site.worker()
    assert other.result(PATIENCE_S) == 1


def test_a_worker_uses_all_of_its_processes(site: Site) -> None:
    worker = site.worker("--processes", "3", "--concurrency", "1")
    handles = [site.enqueue("gated", "go") for _ in range(3)]
    pids = {site.wait_started(x) for x in handles}
    assert len(pids) == 3
    assert pids == set(worker.children())
    site.open("go")
    assert {x.result(PATIENCE_S) for x in handles} == {"done"}


@on_both
def test_delayed_executions_run_when_they_are_due_and_not_before(site: Site) -> None:
    site.worker()
    x = site.app.jobs["echo"].options(delay="1s").enqueue(1)
    assert x.result(PATIENCE_S) == 1
    started_at = x.attempts()[0].started_at
    assert started_at is not None
    assert started_at >= x.info().run_at
